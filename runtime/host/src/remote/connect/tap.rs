//! Keeps why a connection broke. A plugin that refuses our certificate says so in an alert that comes with the first read, below HTTP/2, whose
//! own error does not tell.

use std::{
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::remote::tls::{Failure, io_failure};

pub(super) struct Tap<S> {
    inner: S,
    broken: Arc<OnceLock<Failure>>,
}

impl<S> Tap<S> {
    pub(super) fn new(inner: S, broken: Arc<OnceLock<Failure>>) -> Self {
        Self { inner, broken }
    }

    fn keep(&self, error: &io::Error) {
        // The first one is the cause; what follows are its consequences.
        let _kept = self.broken.set(io_failure(error));
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Tap<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_read(context, buffer);
        if let Poll::Ready(Err(error)) = &outcome {
            self.keep(error);
        }
        outcome
    }
}

impl<S: AsyncRead + Unpin> Tap<S> {
    /// After an alert the write side may fail first, and only the read side knows the alert. What is read here is lost, and so is the connection.
    fn last_words(&mut self, context: &mut Context<'_>) {
        let mut bytes = [0; 1_024];
        let mut buffer = ReadBuf::new(&mut bytes);
        if let Poll::Ready(Err(error)) = Pin::new(&mut self.inner).poll_read(context, &mut buffer) {
            self.keep(&error);
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Tap<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write(context, bytes);
        if matches!(outcome, Poll::Ready(Err(_))) {
            self.last_words(context);
        }
        outcome
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write_vectored(context, bytes);
        if matches!(outcome, Poll::Ready(Err(_))) {
            self.last_words(context);
        }
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_flush(context);
        if matches!(outcome, Poll::Ready(Err(_))) {
            self.last_words(context);
        }
        outcome
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
