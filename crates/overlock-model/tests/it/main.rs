//! Runs with a model behind them, from the request to the document.

// A scripted model in the same process.
mod scripted;
