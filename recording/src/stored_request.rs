//! The request for a recording, as the session stores it.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The most bytes of a request, as JSON.
const MAX_BYTES: usize = 64 << 10;

/// The request for a recording: a JSON object of at most 64 KiB. Its keys are those of the program that recorded the
/// session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct StoredRequest(Map<String, Value>);

impl StoredRequest {
    /// Creates the stored form of a request. None if it is not a JSON object, or is too long.
    pub fn new<T: Serialize>(request: &T) -> Option<Self> {
        match serde_json::to_value(request) {
            Ok(Value::Object(object)) => Self::bounded(object),
            _ => None,
        }
    }

    /// Returns the request as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        Value::Object(self.0.clone())
    }

    fn bounded(object: Map<String, Value>) -> Option<Self> {
        let json = serde_json::to_vec(&object).ok()?;
        (json.len() <= MAX_BYTES).then_some(Self(object))
    }
}

impl<'de> Deserialize<'de> for StoredRequest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::bounded(Map::deserialize(from)?)
            .ok_or_else(|| D::Error::custom(format!("a request of more than {MAX_BYTES} bytes")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_is_read_as_it_was_stored() {
        let request = json!({"target": "all", "settings": {"events": ["cycles"]}});
        let stored = StoredRequest::new(&request).unwrap();
        let json = serde_json::to_string(&stored).unwrap();
        let read: StoredRequest = serde_json::from_str(&json).unwrap();
        assert_eq!(read, stored);
        assert_eq!(read.to_json(), request);
    }

    #[test]
    fn a_request_that_is_too_long_is_neither_stored_nor_read() {
        // {"a":"…"} has eight bytes besides the text.
        let of = |length| json!({"a": "x".repeat(length)});
        assert!(StoredRequest::new(&of(MAX_BYTES - 8)).is_some());
        let long = of(MAX_BYTES - 7);
        assert!(StoredRequest::new(&long).is_none());
        let refused = serde_json::from_value::<StoredRequest>(long).unwrap_err();
        assert!(refused.to_string().contains("65536 bytes"), "{refused}");
        for other in [json!([]), json!("all"), json!(1)] {
            assert!(StoredRequest::new(&other).is_none());
            assert!(serde_json::from_value::<StoredRequest>(other).is_err());
        }
    }
}
