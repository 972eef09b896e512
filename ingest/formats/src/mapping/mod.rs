//! Mappings: how the lines of a log of some format become event records, without code.
//!
//! A mapping is a TOML file, one a format: what the file is made of (`[input]`), where one execution ends and the next
//! begins (`[execution]`), what its vector clocks look like (`[clock]`), and which parts of a record fill which fields of an
//! event (`[event]` for all, `[[rule]]` for some). [`Mapping::named`] gives the ones that come with the program,
//! [`Mapping::read`] reads one of your own, and [`Mapper`] applies it to a log line by line:
//!
//! ```
//! use demi_formats::mapping::{Mapper, Mapping};
//! use demi_formats::{Events, Fate};
//!
//! # fn main() -> Result<(), demi_formats::mapping::MappingError> {
//! let mapping = Mapping::named("shiviz")?;
//! let log = "alice {\"alice\":1}\nhello\nbob {\"bob\":1, \"alice\":1}\nheard it\n";
//! let mut mapper = Mapper::new(&mapping)?;
//! let units = mapper.map_text("greeting.log", log.as_bytes());
//! let Fate::Row(Events { records, .. }) = &units[1].fate else { return Ok(()) };
//! assert_eq!((records[0].actor.as_str(), records[0].seq), ("bob", 1));
//! # Ok(())
//! # }
//! ```

mod canonical;
mod clocks;
mod compile;
mod counted;
mod cutting;
mod deduce;
mod emit;
mod erlang;
mod error;
mod file;
mod filters;
mod links;
mod mapper;
mod path;
mod patterns;
mod real_time;
mod seq;
mod shape;
mod shipped;
mod sniff;
mod stamp;
mod template;
mod wrapper;

pub use error::MappingError;
pub use file::{
    Carry, Choose, Clock, Execution, Fields, Header, Input, Link, LinkOrder, Mapping, RealTime, Rule, Ticks,
};
pub use mapper::{HEAD, Mapper, Needs, Overrides, Piece, ReadSource, Take, Unit};
pub use seq::{Gaps, Seq, ToldSeq};
pub use shape::Shape;
pub use shipped::{Shipped, shipped};
pub use stamp::{OneOrSeveral, Time, TimeFormat};
pub use wrapper::{UnknownWrapper, Wrapper};

pub use crate::container::Container;
