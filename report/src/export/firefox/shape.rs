//! The tables of a thread in the Firefox Profiler, with the columns of version 55 of the processed format.

use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FirefoxThread {
    pub name: String,
    pub is_main_thread: bool,
    pub process_type: &'static str,
    pub process_name: String,
    #[serde(flatten)]
    pub lifetime: Lifetime,
    pub show_markers_in_timeline: bool,
    pub pid: String,
    pub tid: u32,
    #[serde(flatten)]
    pub tables: ThreadTables,
}

/// When the thread and its process ran. The default is the whole recording.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct Lifetime {
    pub process_startup_time: u32,
    pub process_shutdown_time: Option<u32>,
    pub register_time: u32,
    pub unregister_time: Option<u32>,
    pub paused_ranges: [u32; 0],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadTables {
    pub samples: Samples,
    pub markers: serde_json::Value,
    pub stack_table: StackTable,
    pub frame_table: FrameTable,
    pub func_table: FuncTable,
    pub resource_table: ResourceTable,
    pub native_symbols: serde_json::Value,
    pub string_array: Vec<String>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct Samples {
    pub length: usize,
    pub weight_type: &'static str,
    pub stack: Vec<Option<u32>>,
    pub time_deltas: Vec<f64>,
    pub weight: Vec<f64>,
    #[serde(rename = "threadCPUDelta", skip_serializing_if = "Vec::is_empty")]
    pub cpu_delta: Vec<u64>,
}

#[derive(Serialize, Default)]
pub struct StackTable {
    pub length: usize,
    pub prefix: Vec<Option<u32>>,
    pub frame: Vec<u32>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct FrameTable {
    pub length: usize,
    pub address: Vec<i32>,
    pub inline_depth: Vec<u32>,
    pub category: Vec<usize>,
    pub subcategory: Vec<u32>,
    pub func: Vec<u32>,
    pub native_symbol: Vec<()>,
    #[serde(rename = "innerWindowID")]
    pub inner_window: Vec<u32>,
    pub line: Vec<Option<u32>>,
    pub column: Vec<()>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct FuncTable {
    pub length: usize,
    pub name: Vec<u32>,
    #[serde(rename = "isJS")]
    pub is_js: Vec<bool>,
    #[serde(rename = "relevantForJS")]
    pub relevant_for_js: Vec<bool>,
    pub resource: Vec<u32>,
    pub file_name: Vec<Option<u32>>,
    pub line_number: Vec<()>,
    pub column_number: Vec<()>,
}

#[derive(Serialize, Default)]
pub struct ResourceTable {
    pub length: usize,
    pub lib: Vec<()>,
    pub name: Vec<u32>,
    pub host: Vec<()>,
    #[serde(rename = "type")]
    pub kind: Vec<u32>,
}
