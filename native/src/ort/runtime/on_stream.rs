//! Sessions that work in our stream.

use super::{Providers, Runtime, logged};
use crate::gpu::stream::Stream;
use crate::ort::provider::Provider;
use ort::logging::{LogLevel, LoggerFunction};
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
    /// Options of a session that keeps what it uses until it is closed. It logs as that of the process does.
    pub(super) fn keeping(kept: impl Send + Sync + 'static, builder: SessionBuilder) -> ort::Result<SessionBuilder> {
        Ok(builder.with_logger(logger(kept, |_| {}))?.with_log_level(LogLevel::Error)?)
    }
}

/// A session's logger, which also keeps what the session uses. `ort` drops the logger alone after the session, and memory that a session has
/// given out keeps it longer than its network. `tell` gets the messages that are no errors.
pub(super) fn logger(kept: impl Send + Sync + 'static, tell: impl Fn(&str) + Send + Sync + 'static) -> LoggerFunction {
    Arc::new(move |level, _: &str, _: &str, _: &str, message: &str| {
        let _kept = &kept;
        match level {
            LogLevel::Error | LogLevel::Fatal => logged::keep(message),
            _ => tell(message),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_session_uses_lives_as_long_as_the_logger_that_is_dropped_after_the_session() {
        let weights = Arc::new("weights");
        let logger = logger((None::<Arc<Stream>>, weights.clone()), |_| {});
        let there = Arc::downgrade(&weights);
        drop(weights);
        assert!(there.upgrade().is_some());
        drop(logger);
        assert!(there.upgrade().is_none());
    }
}
