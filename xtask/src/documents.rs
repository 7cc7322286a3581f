//! The examples in the repository's documents, compiled and run as doc tests so that they stay true.

/// How to contribute.
#[cfg(doctest)]
#[doc = include_str!("../../CONTRIBUTING.md")]
pub struct Contributing;
