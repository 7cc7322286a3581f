//! The examples in the repository's documents, compiled and run as doc tests so that they stay true.

/// What a newcomer reads first.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// How to contribute.
#[cfg(doctest)]
#[doc = include_str!("../../CONTRIBUTING.md")]
pub struct Contributing;
