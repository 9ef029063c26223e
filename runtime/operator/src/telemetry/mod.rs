//! Logs: one line per event on stderr, as text for people or JSON for machines. stdout belongs to what a command was asked for.

mod traces;

use std::io::{self, IsTerminal};

use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{LevelFilter, Targets},
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    registry::LookupSpan,
    util::SubscriberInitExt,
};

pub use self::traces::{Error as TracesError, Traces};

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people; in colour on a terminal.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Why there are no logs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The filter cannot be read.
    #[error("log filter {filter:?}: {problem}; write levels by target, for example \"info\" or \"warn,weir_operator=debug\"")]
    Filter {
        /// What was given.
        filter: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Called twice, or another library was faster.
    #[error("logs were set up before")]
    Twice,
}

/// Sets up the logs of this process. An empty filter means `info`.
///
/// # Errors
/// The filter cannot be read, or logs were set up before.
pub fn init(format: LogFormat, filter: &str, traces: Option<&Traces>) -> Result<(), Error> {
    let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    // Our own spans only: those of the client and of the exporter itself would be many.
    let ours = Targets::new().with_target("weir_operator", LevelFilter::INFO);
    let spans = traces.map(|traces| tracing_opentelemetry::layer().with_tracer(traces.tracer()).with_filter(ours));
    subscriber(format, filter, colour, io::stderr)?.with(spans).try_init().map_err(|_| Error::Twice)
}

fn subscriber<W>(
    format: LogFormat,
    filter: &str,
    colour: bool,
    writer: W,
) -> Result<impl Subscriber + for<'a> LookupSpan<'a> + Send + Sync, Error>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let text = if filter.trim().is_empty() { "info" } else { filter };
    let filter = EnvFilter::builder().parse(text).map_err(|e| Error::Filter { filter: filter.to_owned(), problem: e.to_string() })?;
    // Times are the library's default: RFC 3339 in UTC.
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Text => fmt::layer().with_ansi(colour).with_writer(writer).boxed(),
        LogFormat::Json => fmt::layer().with_ansi(false).with_writer(writer).json().flatten_event(true).boxed(),
    };
    Ok(tracing_subscriber::registry().with(lines.with_filter(filter)))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, filter: &str) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = subscriber(format, filter, false, move || writer.clone()).expect("a filter");
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(object = "a/b", count = 3, "converged");
            tracing::debug!("more");
        });
        let bytes = buffer.0.lock().expect("no panic").clone();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn json_lines_have_flat_fields_and_a_time_in_utc() {
        let text = logged(LogFormat::Json, "");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1, "debug is off by default: {text}");
        let line: serde_json::Value = serde_json::from_str(lines[0]).expect("JSON");
        assert_eq!(line["message"], "converged");
        assert_eq!(line["object"], "a/b");
        assert_eq!(line["count"], 3);
        assert_eq!(line["level"], "INFO");
        let time = line["timestamp"].as_str().expect("a time");
        assert!(time.ends_with('Z') && time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    }

    #[test]
    fn text_lines_have_no_colour_where_there_is_no_terminal() {
        let text = logged(LogFormat::Text, "weir_operator=debug");
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("converged") && text.contains("count=3") && !text.contains('\u{1b}'), "{text}");
        assert!(text.split_whitespace().next().is_some_and(|t| t.ends_with('Z')), "{text}");
    }

    #[test]
    fn a_bad_filter_is_named_with_an_example() {
        let Err(error) = subscriber(LogFormat::Text, "weir=loud", false, io::sink) else { panic!("accepted") };
        let text = error.to_string();
        assert!(text.contains("weir=loud") && text.contains("weir_operator=debug"), "{text}");
    }
}
