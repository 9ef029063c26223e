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

/// Errors of writing are not kept: after an alert the write side may fail first, and only the read side knows the alert.
impl<S: AsyncWrite + Unpin> AsyncWrite for Tap<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
