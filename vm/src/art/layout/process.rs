//! stub
pub(crate) struct InProcess;
pub(crate) struct Look;
