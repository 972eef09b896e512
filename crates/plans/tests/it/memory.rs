//! An engine of its own, in memory: it knows no SQL and takes steps as they are meant.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use demi_plans::{Cell, Counted, Dialect, Engine, Files, KEY, PlanError, Rows, Saved, Small, Step};
use parquet::arrow::ArrowWriter;

/// A message: receiver and position, sender and position.
pub type Message = [i64; 4];

#[derive(Default)]
pub struct Memory {
    messages: Vec<Message>,
    /// By key of a block: what was heard before it, by sender.
    checkpoints: HashMap<i64, BTreeMap<i64, i64>>,
    /// By key of a block: its messages.
    blocks: HashMap<i64, Vec<Message>>,
    put: HashMap<&'static str, Vec<Vec<i64>>>,
    pub rounds: u32,
}

impl Memory {
    pub fn new(messages: &[Message], last: &BTreeMap<i64, i64>, block: i64) -> Memory {
        let mut memory = Memory { messages: messages.to_vec(), ..Memory::default() };
        memory.messages.sort_unstable();
        for (&ra, &last) in last {
            let of: Vec<Message> = memory.messages.iter().filter(|m| m[0] == ra).copied().collect();
            for b in 0..=last / block {
                let key = ra * KEY + b;
                let heard = memory.checkpoints.entry(key).or_default();
                for m in of.iter().filter(|m| m[1] / block < b) {
                    let known = heard.entry(m[2]).or_default();
                    *known = m[3].max(*known);
                }
                memory.blocks.insert(key, of.iter().filter(|m| m[1] / block == b).copied().collect());
            }
        }
        memory
    }

    fn table(&self, name: &str) -> &[Vec<i64>] {
        self.put.get(name).map_or(&[], Vec::as_slice)
    }
}

impl Engine for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn dialect(&self) -> Dialect {
        Dialect::DuckDb
    }

    fn open(&mut self, _: &[Files]) -> Result<(), PlanError> {
        Ok(())
    }

    fn put(&mut self, tables: &[Small]) -> Result<(), PlanError> {
        for table in tables {
            let cell = |cell: &Cell| if let Cell::Long(n) = cell { *n } else { panic!("a text") };
            let rows = table.rows().iter().map(|row| row.iter().map(cell).collect()).collect();
            self.put.insert(table.name(), rows);
        }
        Ok(())
    }

    fn query(&mut self, step: Step, _: &[i64]) -> Result<Rows, PlanError> {
        assert_eq!(step, Step::Round);
        self.rounds += 1;
        let mut found: BTreeMap<(i64, i64), i64> = BTreeMap::new();
        let mut read = 0;
        for delta in self.table("delta") {
            let [target, _, key, _, hi, _] = delta[..] else { panic!("{delta:?}") };
            let mut raise = |actor: i64, ord: i64| {
                read += 1;
                let known = found.entry((target, actor)).or_default();
                *known = ord.max(*known);
            };
            self.checkpoints[&key].iter().for_each(|(&sa, &sp)| raise(sa, sp));
            self.blocks[&key].iter().filter(|m| m[1] <= hi).for_each(|m| raise(m[2], m[3]));
        }
        let known: HashMap<(i64, i64), i64> =
            self.table("frontier").iter().map(|row| ((row[0], row[1]), row[2])).collect();
        let raised = found.into_iter().filter(|(key, ord)| *ord > known.get(key).copied().unwrap_or(0));
        let rows = raised.map(|((target, actor), ord)| vec![target, actor, ord]).collect();
        Ok(Rows { rows, counted: Counted { rows_read: Some(read), bytes_read: None } })
    }

    fn save(&mut self, step: Step, path: &Path) -> Result<Saved, PlanError> {
        assert_eq!(step, Step::Rest);
        let known: HashMap<i64, (i64, i64)> =
            self.table("known").iter().map(|row| (row[0], (row[1], row[2]))).collect();
        let of = |actor| known.get(&actor).copied().unwrap_or((0, 0));
        let rest: Vec<&Message> =
            self.messages.iter().filter(|m| m[1] > of(m[0]).0 && m[3] > of(m[2]).1).collect();
        let names = ["ra", "rp", "sa", "sp"];
        let schema = std::sync::Arc::new(Schema::new(
            names.map(|name| Field::new(name, DataType::Int64, false)).to_vec(),
        ));
        let columns = (0..4).map(|at| {
            std::sync::Arc::new(Int64Array::from_iter_values(rest.iter().map(|m| m[at])))
                as arrow_array::ArrayRef
        });
        let batch = RecordBatch::try_new(schema.clone(), columns.collect()).unwrap();
        let mut writer = ArrowWriter::try_new(std::fs::File::create(path).unwrap(), schema, None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        Ok(Saved { files: vec![path.to_owned()], counted: Counted::default() })
    }
}
