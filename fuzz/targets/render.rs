//! Rendering any bytes terminates and never exceeds its limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_fuzz::number_and_text;
use overlock_json::{CutValue, RenderOptions, SummaryMode, render};

fuzz_target!(|input: &[u8]| {
    let (number, text) = number_and_text(input);
    for cut_value in [CutValue::Hint, CutValue::Keep, CutValue::Tail] {
        for (limit, look_back) in [
            (None, None),
            (Some(200), None),
            (Some(200), Some(number)),
            (Some(200 + number), None),
        ] {
            for summary in [SummaryMode::Types, SummaryMode::Keys] {
                let options = RenderOptions {
                    budget: number,
                    cut_value,
                    summary,
                    limit,
                    look_back,
                };
                let Ok(rendered) = render(text, &options) else {
                    continue;
                };
                if let Some(limit) = limit {
                    let size = rendered.chars().count();
                    assert!(size <= limit, "{size} is more than {limit}: {rendered:?}");
                }
            }
        }
    }
});
