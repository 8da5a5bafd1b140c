//! The data of the charts of what was watched, and the words that stand above them.

use super::changes::ChangeMark;
use serde::Serialize;

/// What the charts show besides the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Charted {
    /// Charts of resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub panels: Vec<Panel>,
    /// Lines that mark changes in all charts over time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeMark>,
}

/// The words of a chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PanelText {
    /// Its name in the page, the same as that of its data.
    pub id: String,
    /// Title.
    pub title: String,
    /// What it shows.
    pub caption: String,
}

/// The data of a chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Panel {
    /// Its name in the page.
    pub id: String,
    /// What its values are.
    pub unit: PanelUnit,
    /// Whether each curve stands on the one before it.
    pub is_stacked: bool,
    /// Its curves.
    pub curves: Vec<PanelCurve>,
}

/// What the values of a chart are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PanelUnit {
    /// Shares from 0 to 1.
    Ratio,
    /// Numbers of things.
    Count,
    /// Events per second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Times in milliseconds.
    Milliseconds,
}

/// A curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PanelCurve {
    /// What it shows.
    pub label: String,
    /// Number of its colour, from 0.
    pub colour: usize,
    /// Whether it is dashed, to tell it from another one of the same colour.
    pub is_dashed: bool,
    /// Whether the area below it is filled.
    pub is_area: bool,
    /// A value for each point in time; nothing where nothing was told.
    pub values: Vec<Option<f64>>,
}
