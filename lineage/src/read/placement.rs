//! Where the rows of files go.

use std::borrow::Cow;
use std::ops::Range;

use super::intern::NONE;
use super::source::RowRanges;

/// Rows of a file for each run of chosen ones, with which it pays to leave out the others: beginning and ending a run costs more than
/// reading a few rows too many.
const RUN: usize = 16;

/// The places of the rows of the files.
#[derive(Default)]
pub(crate) struct Placement {
    /// By row, files in the order given: the event, or [`NONE`] for a row that is none.
    pub(crate) event_of_row: Vec<u32>,
    /// First row of each file.
    file_rows: Vec<u32>,
    /// How many events there are.
    pub(crate) events: usize,
}

impl Placement {
    /// The event of each row, the first row of each file, and how many events there are.
    pub(crate) fn new(event_of_row: Vec<u32>, file_rows: Vec<u32>, events: usize) -> Placement {
        Placement { event_of_row, file_rows, events }
    }

    /// First row of each file.
    pub(crate) fn file_rows(&self) -> &[u32] {
        &self.file_rows
    }

    /// Where the rows of chosen events go, which are numbered anew, in their order.
    pub(crate) fn of_chosen(&self, chosen: impl Fn(u32) -> bool) -> Placement {
        let mut number = vec![NONE; self.events];
        let mut events = 0;
        for (event, number) in number.iter_mut().enumerate() {
            if chosen(event as u32) {
                *number = events;
                events += 1;
            }
        }
        let new = |&event: &u32| if event == NONE { NONE } else { number[event as usize] };
        Placement {
            event_of_row: self.event_of_row.iter().map(new).collect(),
            file_rows: self.file_rows.clone(),
            events: events as usize,
        }
    }

    /// The events of a file's rows.
    pub(crate) fn of_file(&self, file: usize) -> &[u32] {
        let end = self.file_rows.get(file + 1).map_or(self.event_of_row.len(), |&row| row as usize);
        &self.event_of_row[self.file_rows[file] as usize..end]
    }

    /// The files with events in an order in which their rows are in order, if there is one.
    pub(crate) fn sorted_files(&self) -> Option<Vec<usize>> {
        let events = |file: usize| self.of_file(file).iter().filter(|&&event| event != NONE);
        let first = |file: usize| events(file).next();
        let mut files: Vec<usize> = (0..self.file_rows.len()).filter(|&f| first(f).is_some()).collect();
        files.sort_by_key(|&file| first(file));
        let all = files.iter().flat_map(|&file| events(file));
        all.zip(0..).all(|(&event, next)| event == next).then_some(files)
    }

    /// The runs of rows of a file whose events are `wanted`; rows that are no event never are.
    pub(crate) fn runs_of(&self, file: usize, wanted: impl Fn(u32) -> bool) -> Vec<Range<u32>> {
        let all = self.of_file(file).iter().zip(0..);
        runs(all.filter(|(event, _)| **event != NONE && wanted(**event)).map(|(_, row)| row))
    }

    /// Which rows of a file to read for these events, and the events of the rows that are read: all, or the wanted ones where it pays to
    /// read no others.
    pub(crate) fn reading(
        &self,
        file: usize,
        wanted: impl Fn(u32) -> bool + Copy,
    ) -> (RowRanges, Cow<'_, [u32]>) {
        let all = self.of_file(file);
        let is = |event: u32| event != NONE && wanted(event);
        if all.iter().all(|&event| is(event)) {
            return (None, Cow::Borrowed(all));
        }
        let runs = self.runs_of(file, wanted);
        if runs.len() * RUN > all.len() {
            return (None, Cow::Borrowed(all));
        }
        (Some(runs), all.iter().copied().filter(|&event| is(event)).collect())
    }
}

/// Runs of numbers that come in order.
pub(crate) fn runs(numbers: impl Iterator<Item = u32>) -> Vec<Range<u32>> {
    let mut runs: Vec<Range<u32>> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => runs.push(number..number + 1),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(run: Range<u32>) -> Vec<Range<u32>> {
        vec![run]
    }

    fn placement(event_of_row: &[u32], file_rows: &[u32]) -> Placement {
        let events = event_of_row.iter().filter(|&&event| event != NONE).count();
        Placement { event_of_row: event_of_row.to_vec(), file_rows: file_rows.to_vec(), events }
    }

    #[test]
    fn files_in_order_are_known_for_it() {
        assert_eq!(placement(&[2, 3, 0, 1], &[0, 2]).sorted_files(), Some(vec![1, 0]));
        assert_eq!(placement(&[2, NONE, 3, 0, 1], &[0, 3, 3]).sorted_files(), Some(vec![2, 0]));
        assert_eq!(placement(&[0, 2, 1, 3], &[0, 2]).sorted_files(), None);
    }

    #[test]
    fn chosen_events_are_numbered_anew() {
        let some = placement(&[3, 0, NONE, 2, 1], &[0, 3]).of_chosen(|event| event != 1);
        assert_eq!((some.event_of_row.as_slice(), some.events), (&[2, 0, NONE, 1, NONE][..], 3));
        let runs = |file| some.runs_of(file, |_| true);
        assert_eq!((runs(0), runs(1)), (one(0..2), one(0..1)));
        assert_eq!(some.reading(0, |_| true).0, None, "three rows are read at once");
        let long = placement(&(0..100).collect::<Vec<_>>(), &[0]);
        let (chosen, events) = long.reading(0, |event| (7..9).contains(&event));
        assert_eq!((chosen, &*events), (Some(one(7..9)), &[7, 8][..]));
    }
}
