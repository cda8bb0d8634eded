//! `overlock demo`
