//! A remote plugin for tests.
