//! The tables of a run as text.

use millpond_sim::tables::{Column, Sink};
use serde_json::Value;

/// Tables in the making.
#[derive(Default)]
pub(crate) struct Text {
    json: String,
    columns: usize,
}

impl Text {
    /// `{"runs": {"run": [0], …}, "flows": {…}, …}` in the order of tables and columns; a cell without a value is `null`.
    pub(crate) fn json(self) -> String {
        if self.json.is_empty() { "{}".to_owned() } else { format!("{{{}}}}}", self.json) }
    }
}

impl Sink for Text {
    fn table(&mut self, name: &'static str) {
        let between = if self.json.is_empty() { "" } else { "}," };
        self.json += &format!("{between}{}:{{", Value::from(name));
        self.columns = 0;
    }

    fn column(&mut self, name: &'static str, cells: Column<'_>) {
        let between = if self.columns == 0 { "" } else { "," };
        self.json += &format!("{between}{}:{}", Value::from(name), values(cells));
        self.columns += 1;
    }
}

fn values(cells: Column<'_>) -> Value {
    match cells {
        Column::Bool(cells) => cells.into(),
        Column::U32(cells) => cells.into(),
        Column::MaybeU32(cells) => list(cells),
        Column::U64(cells) => cells.into(),
        Column::MaybeU64(cells) => list(cells),
        Column::I64(cells) => cells.into(),
        Column::MaybeI64(cells) => list(cells),
        Column::F64(cells) => cells.into(),
        Column::MaybeF64(cells) => list(cells),
        Column::Word(cells) => cells.into(),
        Column::MaybeWord(cells) => list(cells),
    }
}

fn list<T: Into<Value>>(cells: Vec<Option<T>>) -> Value {
    cells.into_iter().map(|cell| cell.map_or(Value::Null, Into::into)).collect()
}
