//! Rows of a table on their way into its data files, one for each partition.
//!
//! The table library has such a writer too. It copies every batch, and encodes its columns one after the other.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_cast::cast;
use arrow_schema::{DataType, Schema, SchemaRef};
use arrow_select::take::take_record_batch;
use deltalake_core::kernel::Add;
use deltalake_core::writer::RecordBatchWriter;
use deltalake_core::{DeltaResult, DeltaTable, DeltaTableError};
use object_store::path::Path as Location;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _};
use parquet::data_type::ByteArray;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::statistics::Statistics;
use serde_json::{Map, Value};

use crate::encoder::Encoder;

/// Bytes of a file that are held before they are written.
const PART: usize = 5 << 20;
/// What stands in a path for a partition without a value.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";
/// What is written otherwise in a path; control characters and what is not ASCII are too. From the Delta protocol, "How to URL encode keys and
/// string values".
const ENCODED: &[u8] = b" !\"#$%&'()*+,/:;<=>?@[\\]^`{|}";

/// The values of the columns of a partition.
type Values = Vec<Option<String>>;

/// Data files of a table that are being written.
pub(super) struct DataFiles {
    storage: Arc<dyn ObjectStore>,
    /// The columns of the table.
    schema: SchemaRef,
    /// Those of a data file.
    in_file: SchemaRef,
    partitions: Vec<String>,
    /// Of which columns the log says between which bounds they are.
    bounded: Vec<String>,
    properties: WriterProperties,
    open: BTreeMap<Values, DataFile>,
}

/// A data file that is being written.
struct DataFile {
    location: Location,
    encoder: Encoder<Vec<u8>>,
    /// The file, once there is enough for a part.
    upload: Option<Box<dyn MultipartUpload>>,
    /// Bytes that were handed over.
    bytes: usize,
}

impl DataFiles {
    /// A writer of the table's data files.
    pub(super) fn new(table: &DeltaTable, properties: WriterProperties) -> DeltaResult<Self> {
        let snapshot = table.snapshot()?;
        let partitions = snapshot.metadata().partition_columns().to_vec();
        let configured = snapshot.metadata().configuration().get("delta.dataSkippingStatsColumns");
        let bounded = configured.map(|names| names.split(',').map(|name| name.trim().to_owned()).collect());
        // It refuses tables that ask more of their writers.
        let schema = RecordBatchWriter::for_table(table)?.arrow_schema();
        let kept = schema.fields().iter().filter(|field| !partitions.contains(field.name()));
        let in_file = Arc::new(Schema::new(kept.cloned().collect::<Vec<_>>()));
        Ok(DataFiles {
            storage: table.object_store(),
            schema,
            in_file,
            partitions,
            bounded: bounded.unwrap_or_default(),
            properties,
            open: BTreeMap::new(),
        })
    }

    /// The columns of the table.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How files are written from here on.
    pub(super) fn set_properties(&mut self, properties: WriterProperties) {
        self.properties = properties;
    }

    /// Adds the rows of a batch to the files of their partitions. After an error nothing is left of what was written.
    pub(super) async fn write(&mut self, batch: &RecordBatch) -> DeltaResult<()> {
        let done = self.add(batch).await;
        if done.is_err() {
            self.open.clear();
        }
        done
    }

    async fn add(&mut self, batch: &RecordBatch) -> DeltaResult<()> {
        for (values, rows) in self.parts(batch)? {
            let file = match self.open.get_mut(&values) {
                Some(file) => file,
                None => {
                    let location = self.location(&values)?;
                    let encoder = Encoder::new(Vec::new(), self.in_file.clone(), self.properties.clone())?;
                    let file = DataFile { location, encoder, upload: None, bytes: 0 };
                    self.open.entry(values).or_insert(file)
                }
            };
            file.encoder.write(&rows)?;
            if file.encoder.out().len() >= PART {
                file.put(&*self.storage).await?;
            }
        }
        Ok(())
    }

    /// The rows of each partition, in the columns of a data file.
    fn parts(&self, batch: &RecordBatch) -> DeltaResult<Vec<(Values, RecordBatch)>> {
        let found = self.in_file.fields().iter().map(|field| {
            let column = batch.column_by_name(field.name()).ok_or_else(|| missing(field.name()))?;
            Ok::<_, DeltaTableError>(match column.data_type() == field.data_type() {
                true => column.clone(),
                false => cast(column, field.data_type())?,
            })
        });
        let rows = RecordBatch::try_new(self.in_file.clone(), found.collect::<DeltaResult<Vec<_>>>()?)?;
        let columns = self.partitions.iter().map(|name| {
            let column = batch.column_by_name(name).ok_or_else(|| missing(name))?;
            Ok::<_, DeltaTableError>(column.clone())
        });
        let columns: Vec<ArrayRef> = columns.collect::<DeltaResult<_>>()?;
        let mut starts = vec![0];
        starts.extend((1..rows.num_rows()).filter(|row| columns.iter().any(|column| differ(column, *row))));
        if rows.num_rows() == 0 {
            return Ok(Vec::new());
        }
        if let [_] = starts.as_slice() {
            return Ok(vec![(values(&columns, 0)?, rows)]);
        }
        let mut parts: BTreeMap<Values, Vec<u32>> = BTreeMap::new();
        for (at, start) in starts.iter().enumerate() {
            let end = starts.get(at + 1).copied().unwrap_or(rows.num_rows());
            parts.entry(values(&columns, *start)?).or_default().extend(*start as u32..end as u32);
        }
        let taken = parts.into_iter().map(|(values, places)| {
            Ok::<_, DeltaTableError>((values, take_record_batch(&rows, &UInt32Array::from(places))?))
        });
        taken.collect()
    }

    /// A name for a file of the partition, as nothing is called.
    fn location(&self, values: &Values) -> DeltaResult<Location> {
        let mut path = String::new();
        for (name, value) in self.partitions.iter().zip(values) {
            let value = value.as_deref().map_or_else(|| NO_VALUE.to_owned(), encoded);
            let _ = write!(path, "{name}={value}/");
        }
        let random = [RandomState::new().hash_one(0), RandomState::new().hash_one(1)];
        let folder = Location::parse(path.trim_end_matches('/'))
            .map_err(|error| DeltaTableError::generic(error.to_string()))?;
        Ok(folder.join(format!("part-{:016x}{:016x}.zstd.parquet", random[0], random[1])))
    }

    /// Ends the files, and says what adds them to the table.
    pub(super) async fn finish(&mut self) -> DeltaResult<Vec<Add>> {
        let mut adds = Vec::new();
        for (values, mut file) in std::mem::take(&mut self.open) {
            let what = file.encoder.finish()?;
            file.end(&*self.storage).await?;
            let partition: HashMap<String, Option<String>> =
                self.partitions.iter().cloned().zip(values).collect();
            adds.push(Add {
                path: file.location.to_string(),
                size: file.bytes as i64,
                partition_values: partition,
                data_change: true,
                stats: Some(self.stats(&what).to_string()),
                ..Add::default()
            });
        }
        Ok(adds)
    }

    /// What the log says of the content of a file.
    fn stats(&self, file: &ParquetMetaData) -> Value {
        let (mut least, mut most, mut nulls) = (Map::new(), Map::new(), Map::new());
        let columns = self.in_file.fields().iter().enumerate();
        for (at, field) in columns.filter(|(_, field)| self.bounded.contains(field.name())) {
            let groups = file.row_groups().iter();
            let groups = groups.map(|group| Bounds::of(group.column(at).statistics(), group.num_rows()));
            let Some(bounds) = groups.reduce(Bounds::with) else { continue };
            if bounds.open {
                continue;
            }
            for (map, bound) in [(&mut least, bounds.least), (&mut most, bounds.most)] {
                map.extend(bound.map(|bound| (field.name().clone(), Value::from(bound))));
            }
            nulls.insert(field.name().clone(), bounds.nulls.into());
        }
        let records = file.file_metadata().num_rows();
        serde_json::json!({ "numRecords": records, "minValues": least, "maxValues": most, "nullCount": nulls })
    }
}

impl DataFile {
    /// Hands over what was encoded.
    async fn put(&mut self, storage: &dyn ObjectStore) -> DeltaResult<()> {
        let upload = match &mut self.upload {
            Some(upload) => upload,
            None => self.upload.insert(storage.put_multipart(&self.location).await?),
        };
        let bytes = std::mem::take(self.encoder.out());
        self.bytes += bytes.len();
        upload.put_part(bytes.into()).await?;
        Ok(())
    }

    /// Hands over the rest; all of it is on the disk then.
    async fn end(&mut self, storage: &dyn ObjectStore) -> DeltaResult<()> {
        if self.upload.is_some() {
            self.put(storage).await?;
        }
        match self.upload.take() {
            Some(mut upload) => drop(upload.complete().await?),
            None => {
                let bytes = std::mem::take(self.encoder.out());
                self.bytes += bytes.len();
                storage.put(&self.location, bytes.into()).await?;
            }
        }
        Ok(())
    }
}

fn missing(column: &str) -> DeltaTableError {
    DeltaTableError::generic(format!("the column {column} is missing"))
}

/// Whether a row has another value in the column than the one before it.
fn differ(column: &ArrayRef, row: usize) -> bool {
    if column.is_null(row) != column.is_null(row - 1) {
        return true;
    }
    match column.data_type() {
        DataType::Utf8 => {
            let texts = column.as_string::<i32>();
            texts.value(row) != texts.value(row - 1)
        }
        DataType::Date32 => {
            let days = column.as_primitive::<arrow_array::types::Date32Type>();
            column.is_valid(row) && days.value(row) != days.value(row - 1)
        }
        // As if each row were in a partition of its own: they are put together again by their values.
        _ => true,
    }
}

/// The values of a row.
fn values(columns: &[ArrayRef], row: usize) -> DeltaResult<Values> {
    let value = |column: &ArrayRef| {
        let text = cast(&column.slice(row, 1), &DataType::Utf8)?;
        Ok::<_, DeltaTableError>(text.is_valid(0).then(|| text.as_string::<i32>().value(0).to_owned()))
    };
    columns.iter().map(value).collect()
}

/// A value as it stands in a path.
fn encoded(value: &str) -> String {
    let mut path = String::with_capacity(value.len());
    for byte in value.bytes() {
        if !byte.is_ascii() || byte.is_ascii_control() || ENCODED.contains(&byte) {
            let _ = write!(path, "%{byte:02X}");
        } else {
            path.push(byte.into());
        }
    }
    path
}

/// An end of what is in a column.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bound {
    Number(i64),
    Text(String),
}

impl From<Bound> for Value {
    fn from(bound: Bound) -> Value {
        match bound {
            Bound::Number(number) => number.into(),
            Bound::Text(text) => text.into(),
        }
    }
}

/// Between which bounds a column is, and in how many rows it is nothing.
#[derive(Debug)]
struct Bounds {
    least: Option<Bound>,
    most: Option<Bound>,
    nulls: u64,
    /// Whether there are values beyond any bounds that are known.
    open: bool,
}

impl Bounds {
    /// Of the rows of a row group.
    fn of(statistics: Option<&Statistics>, rows: i64) -> Bounds {
        let Some(statistics) = statistics else {
            return Bounds { least: None, most: None, nulls: 0, open: rows > 0 };
        };
        let text = |bytes: Option<&[u8]>| {
            bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()).map(|text| Bound::Text(text.to_owned()))
        };
        let number = |number: Option<i64>| number.map(Bound::Number);
        let (least, most) = match statistics {
            Statistics::Int32(is) => {
                (number(is.min_opt().map(|n| i64::from(*n))), number(is.max_opt().map(|n| i64::from(*n))))
            }
            Statistics::Int64(is) => (number(is.min_opt().copied()), number(is.max_opt().copied())),
            Statistics::ByteArray(is) => {
                (text(is.min_opt().map(ByteArray::data)), text(is.max_opt().map(ByteArray::data)))
            }
            _ => (None, None),
        };
        let nulls = statistics.null_count_opt().unwrap_or(0);
        let open = (least.is_none() || most.is_none()) && u64::try_from(rows).unwrap_or(0) > nulls;
        Bounds { least, most, nulls, open }
    }

    fn with(self, other: Bounds) -> Bounds {
        // A row group of nothing has no bounds, and changes none.
        let least = match (self.least, other.least) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let nulls = self.nulls + other.nulls;
        Bounds { least, most: self.most.max(other.most), nulls, open: self.open || other.open }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, StringArray};
    use arrow_schema::Field;

    use super::*;

    fn text(values: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    #[test]
    fn values_stand_in_paths_as_the_protocol_has_them() {
        assert_eq!(encoded("a/b c=%ü\u{7f}~-._"), "a%2Fb%20c%3D%25%C3%BC%7F~-._");
    }

    #[test]
    fn bounds_are_those_of_all_row_groups_and_none_where_one_has_none() {
        let schema = Arc::new(Schema::new(vec![
            Field::new("actor", DataType::Utf8, true),
            Field::new("seq", DataType::Int64, true),
        ]));
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(2)).build();
        let bounds = |actors: &[Option<&str>], numbers: &[Option<i64>]| {
            let mut encoder = Encoder::new(Vec::new(), schema.clone(), properties.clone()).unwrap();
            let columns: Vec<ArrayRef> = vec![text(actors), Arc::new(Int64Array::from(numbers.to_vec()))];
            encoder.write(&RecordBatch::try_new(schema.clone(), columns).unwrap()).unwrap();
            let file = encoder.finish().unwrap();
            [0, 1].map(|at| {
                let groups = file.row_groups().iter();
                let of = |g: &parquet::file::metadata::RowGroupMetaData| {
                    Bounds::of(g.column(at).statistics(), g.num_rows())
                };
                groups.map(of).reduce(Bounds::with).unwrap()
            })
        };
        let [actor, seq] = bounds(
            &[Some("b"), None, None, None, Some("a"), Some("c")],
            &[Some(3), Some(-2), None, None, None, Some(9)],
        );
        assert_eq!(
            (actor.least, actor.most, actor.nulls, actor.open),
            (Some(Bound::Text("a".into())), Some(Bound::Text("c".into())), 3, false)
        );
        assert_eq!(
            (seq.least, seq.most, seq.nulls, seq.open),
            (Some(Bound::Number(-2)), Some(Bound::Number(9)), 3, false)
        );
        // A bound that cannot be cut is there as a whole, and holds.
        let long = "\u{10ffff}".repeat(100);
        let [actor, _] = bounds(&[Some(&long), Some("a")], &[None, None]);
        assert!(actor.open || actor.most.unwrap() >= Bound::Text(long));
    }

    #[test]
    fn rows_go_to_their_partitions_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let store = crate::Store::create(dir.path()).unwrap();
        let files = DataFiles::new(&store.events, WriterProperties::default()).unwrap();
        let days = [None, None, Some(1), None, Some(2), Some(1), Some(1)];
        let length = days.len();
        let columns = files.schema.fields().iter().map(|field| match field.name().as_str() {
            "system" => text(&vec![Some("a/b"); length]),
            "date" => Arc::new(arrow_array::Date32Array::from(days.to_vec())),
            "seq" => Arc::new(Int64Array::from_iter_values(0..length as i64)),
            _ if field.is_nullable() => arrow_array::new_null_array(field.data_type(), length),
            _ => cast(&text(&vec![Some("0"); length]), field.data_type()).unwrap(),
        });
        let batch = RecordBatch::try_new(files.schema.clone(), columns.collect()).unwrap();
        let told = |part: &(Values, RecordBatch)| {
            let seqs = part.1.column_by_name("seq").unwrap().clone();
            let seqs = seqs.as_primitive::<arrow_array::types::Int64Type>().values().to_vec();
            (part.0[1].clone(), seqs)
        };
        let parts = files.parts(&batch).unwrap();
        assert!(parts.iter().all(|(values, _)| values[0].as_deref() == Some("a/b")));
        assert_eq!(
            parts.iter().map(told).collect::<Vec<_>>(),
            [
                (None, vec![0, 1, 3]),
                (Some("1970-01-02".into()), vec![2, 5, 6]),
                (Some("1970-01-03".into()), vec![4])
            ]
        );
        let one = files.parts(&batch.slice(5, 2)).unwrap();
        assert_eq!(one.iter().map(told).collect::<Vec<_>>(), [(Some("1970-01-02".into()), vec![5, 6])]);
        assert!(files.parts(&batch.slice(0, 0)).unwrap().is_empty());
        assert!(
            files
                .location(&vec![Some("a/b".into()), None])
                .unwrap()
                .as_ref()
                .starts_with("system=a%2Fb/date=__HIVE")
        );
    }
}
