//! Sessions that work in our stream.

use super::{Providers, Runtime, logged};
use crate::gpu::stream::Stream;
use crate::ort::provider::Provider;
use ort::logging::LogLevel;
use ort::session::builder::SessionBuilder;
use std::sync::Arc;

impl Providers {
    pub fn on_stream(mut self, stream: Option<&Arc<Stream>>) -> Providers {
        if let Some(stream) = stream {
            self.chain =
                self.chain.into_iter().map(|provider| Provider::on_stream(provider, stream.address())).collect();
            self.stream = Some(stream.clone());
        }
        self
    }
}

impl Runtime {
    /// Options of a session that keeps the stream until it is closed: memory that it has given out keeps the session longer than its
    /// network. `ort` closes only the logger after a session, so the logger holds the stream. It logs as that of the process does.
    pub(super) fn keeping(stream: Option<&Arc<Stream>>, builder: SessionBuilder) -> ort::Result<SessionBuilder> {
        let Some(stream) = stream.cloned() else { return Ok(builder) };
        let log = move |level: LogLevel, _: &str, _: &str, _: &str, message: &str| {
            let _kept = &stream;
            if matches!(level, LogLevel::Error | LogLevel::Fatal) {
                logged::keep(message);
            }
        };
        Ok(builder.with_logger(Arc::new(log))?.with_log_level(LogLevel::Error)?)
    }
}
