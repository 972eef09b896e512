//! Finds table functions in SQL and puts names of tables in their place.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, SetExpr, Statement, TableAlias, TableFactor,
    Value, VisitMut, VisitorMut,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

use demi_lineage::LineageError;

/// The functions, with how few and how many arguments each takes, all of them texts.
const FUNCTIONS: [(&str, usize, usize); 7] = [
    ("past", 1, 1),
    ("future", 1, 1),
    ("concurrent", 1, 1),
    ("between", 2, 2),
    ("path", 2, 2),
    ("channel", 2, 2),
    ("cut", 1, usize::MAX),
];

/// Whether a question may read files besides its own tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Files {
    /// The named tables only.
    #[default]
    Refused,
    /// Any file that the process may read, by `read_csv('FILE')`, `read_parquet`, `read_ipc` and `read_json`.
    Allowed,
}

/// A call of a table function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Its name, in small letters.
    pub(crate) function: String,
    /// Its arguments; as many as it takes.
    pub(crate) arguments: Vec<String>,
}

struct Rewriter {
    files: Files,
    calls: Vec<(String, Call)>,
}

fn text_of(argument: &FunctionArg) -> Option<String> {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) = argument else { return None };
    match &value.value {
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(text.clone()),
        _ => None,
    }
}

impl Rewriter {
    fn call(&self, name: &ObjectName, arguments: &[FunctionArg]) -> Result<Option<Call>, LineageError> {
        let function = name.to_string().to_lowercase();
        let Some(&(_, least, most)) = FUNCTIONS.iter().find(|f| f.0 == function) else { return Ok(None) };
        let texts: Option<Vec<String>> = arguments.iter().map(text_of).collect();
        match texts {
            Some(arguments) if (least..=most).contains(&arguments.len()) => {
                Ok(Some(Call { function, arguments }))
            }
            Some(arguments) => {
                let wants = if most == usize::MAX { "one or more".into() } else { least.to_string() };
                Err(LineageError::Question(format!(
                    "{function}() takes {wants} quoted texts, not {}",
                    arguments.len()
                )))
            }
            None => Err(LineageError::Question(format!(
                "the arguments of {function}() are quoted texts, as in {function}('actor/12')"
            ))),
        }
    }

    /// A table function that is none of ours: all that Polars has read files.
    fn foreign(&self, name: &str) -> ControlFlow<LineageError> {
        if self.files == Files::Allowed {
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(LineageError::Question(format!(
            "'{name}' is none of the tables; files are read only where that is allowed (--allow-files)"
        )))
    }
}

/// What is no question would change something, and nothing can be changed.
fn read_only(statement: &str) -> LineageError {
    let words: Vec<&str> = statement.split_whitespace().take(2).collect();
    LineageError::Question(format!(
        "the tables are read only, and a question is a SELECT: '{}' is none",
        words.join(" ")
    ))
}

/// Whether a statement asks and does nothing else, as far as its outermost parts tell; what is within is visited.
fn asks(statement: &Statement) -> bool {
    match statement {
        Statement::Query(_) | Statement::ShowTables { .. } => true,
        Statement::Explain { statement, .. } => asks(statement),
        _ => false,
    }
}

/// Whether all parts of a query ask.
fn only_asks(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => select.into.is_none(),
        SetExpr::Query(query) => only_asks(&query.body),
        SetExpr::SetOperation { left, right, .. } => only_asks(left) && only_asks(right),
        SetExpr::Values(_) | SetExpr::Table(_) => true,
        _ => false,
    }
}

impl VisitorMut for Rewriter {
    type Break = LineageError;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<LineageError> {
        match asks(statement) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(read_only(&statement.to_string())),
        }
    }

    fn pre_visit_query(&mut self, query: &mut sqlparser::ast::Query) -> ControlFlow<LineageError> {
        match only_asks(&query.body) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(read_only(&query.body.to_string())),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<LineageError> {
        let (name, args, alias) = match factor {
            TableFactor::Table { name, args, alias, .. } => (name, args, alias),
            TableFactor::Function { name, .. } => return self.foreign(&name.to_string()),
            TableFactor::TableFunction { expr, .. } => return self.foreign(&expr.to_string()),
            _ => return ControlFlow::Continue(()),
        };
        let Some(given) = args.as_ref() else { return ControlFlow::Continue(()) };
        let call = match self.call(name, &given.args) {
            Ok(Some(call)) => call,
            Ok(None) => return self.foreign(&name.to_string()),
            Err(error) => return ControlFlow::Break(error),
        };
        let table = format!("causal_{}", self.calls.len());
        if alias.is_none() {
            let columns = Vec::new();
            *alias = Some(TableAlias { explicit: true, name: Ident::new(&call.function), columns, at: None });
        }
        *name = ObjectName::from(vec![Ident::new(&table)]);
        *args = None;
        self.calls.push((table, call));
        ControlFlow::Continue(())
    }
}

/// The text with tables in place of table functions, and what each table is to hold.
///
/// # Errors
/// When the text is no SQL, a function is called with other than the texts it takes, or a file is named that is not to be read.
pub(crate) fn rewrite(text: &str, files: Files) -> Result<(String, Vec<(String, Call)>), LineageError> {
    let mut statements = Parser::parse_sql(&GenericDialect, text)
        .map_err(|e| LineageError::Question(e.to_string().replacen("sql parser error: ", "no SQL: ", 1)))?;
    let [statement] = statements.as_mut_slice() else {
        return Err(LineageError::Question(format!("one statement is expected, not {}", statements.len())));
    };
    let mut rewriter = Rewriter { files, calls: Vec::new() };
    if let ControlFlow::Break(error) = VisitMut::visit(statement, &mut rewriter) {
        return Err(error);
    }
    match rewriter.calls.is_empty() {
        true => Ok((text.to_owned(), Vec::new())),
        false => Ok((statement.to_string(), rewriter.calls)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(text: &str) -> Result<(String, Vec<(String, Call)>), LineageError> {
        super::rewrite(text, Files::Refused)
    }

    #[test]
    fn calls_become_tables() {
        let (text, calls) =
            rewrite("SELECT past.actor FROM past('a/1') JOIN cut('a/1', 'b/2') c ON c.event = past.event")
                .unwrap();
        assert_eq!(text, "SELECT past.actor FROM causal_0 AS past JOIN causal_1 c ON c.event = past.event");
        assert_eq!(calls[0].1, Call { function: "past".into(), arguments: vec!["a/1".into()] });
        assert_eq!(calls[1].1.arguments, ["a/1", "b/2"]);
        let (text, calls) =
            rewrite("SELECT event FROM events WHERE event IN (SELECT event FROM Future('x/3'))").unwrap();
        assert!(text.contains("FROM causal_0") && calls.len() == 1, "{text}");
        assert_eq!(rewrite("SELECT 1").unwrap().0, "SELECT 1");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, why) in [
            ("SELEC 1", "no SQL"),
            ("SELECT 1; SELECT 2", "one statement"),
            ("SELECT * FROM past(3)", "quoted texts"),
            ("SELECT * FROM between('a/1')", "takes 2"),
            ("", "one statement"),
            ("SELECT * FROM read_csv('/etc/hostname')", "'read_csv' is none of the tables"),
            ("SELECT 1 WHERE 1 IN (SELECT * FROM Read_Parquet('a'))", "--allow-files"),
            ("WITH c AS (SELECT * FROM read_json('a')) SELECT * FROM c", "--allow-files"),
            ("SELECT * FROM past('a/1') JOIN read_ipc('a') ON true", "--allow-files"),
            ("SELECT 1 UNION SELECT * FROM TABLE(read_csv('a'))", "--allow-files"),
            ("SELECT * FROM events, LATERAL read_csv('a')", "--allow-files"),
            ("EXPLAIN SELECT * FROM read_csv('a')", "--allow-files"),
            ("CREATE TABLE t AS SELECT * FROM read_csv('a')", "read only"),
        ] {
            let error = rewrite(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn what_would_change_something_is_refused() {
        for text in [
            "DROP TABLE events",
            "delete from events",
            "DELETE FROM events WHERE actor = 'a'",
            "TRUNCATE TABLE events",
            "CREATE TABLE t AS SELECT * FROM events",
            "CREATE VIEW v AS SELECT 1",
            "INSERT INTO events SELECT * FROM events",
            "INSERT INTO events VALUES (1)",
            "UPDATE events SET actor = 'b'",
            "ALTER TABLE events RENAME TO e",
            "SELECT * INTO t FROM events",
            "WITH t AS (SELECT 1) DELETE FROM events",
            "WITH t AS (SELECT 1) INSERT INTO events SELECT * FROM t",
            "SELECT 1 UNION ALL SELECT * INTO t FROM events",
            "EXPLAIN DROP TABLE events",
            "SET x = 1",
            "COMMIT",
            "COPY events TO 'a.csv'",
            "ATTACH DATABASE 'a' AS b",
            "GRANT SELECT ON events TO b",
            "CALL f()",
            "PRAGMA x",
        ] {
            for files in [Files::Refused, Files::Allowed] {
                let error = super::rewrite(text, files).unwrap_err().to_string();
                assert!(error.contains("read only") || error.contains("no SQL"), "{text}: {error}");
            }
        }
        for text in [
            "SELECT 1",
            "(SELECT 1)",
            "WITH t AS (SELECT 1) SELECT * FROM t",
            "SELECT 1 UNION SELECT 2",
            "VALUES (1)",
            "SHOW TABLES",
            "EXPLAIN SELECT 1",
        ] {
            super::rewrite(text, Files::Refused).unwrap();
        }
    }

    #[test]
    fn files_stay_where_they_are_allowed() {
        let text = "SELECT * FROM read_csv('a.csv')";
        assert_eq!(super::rewrite(text, Files::Allowed).unwrap(), (text.to_owned(), Vec::new()));
    }
}
