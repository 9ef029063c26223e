//! Nothing here: the tests live in `it/`.
