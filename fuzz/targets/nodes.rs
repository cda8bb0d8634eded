//! Any text in any language is split into nested nodes without losing anything.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_code::{Reading, nodes};

const READINGS: [Reading; 5] = [
    Reading::CSharp,
    Reading::VisualBasic,
    Reading::Sql,
    Reading::Markdown,
    Reading::Plain,
];

fuzz_target!(|bytes: &[u8]| {
    let [choice, text @ ..] = bytes else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    let parts = nodes(&text, READINGS[usize::from(*choice) % READINGS.len()]);
    let all = &parts.nodes;
    assert_eq!((all[0].span.clone(), all[0].parent), (0..text.len(), None));
    let mut reached: Vec<usize> = all.iter().map(|node| node.span.start).collect();
    for (index, node) in all.iter().enumerate() {
        assert!(!node.span.is_empty() || index == 0);
        assert!(text.is_char_boundary(node.span.start) && text.is_char_boundary(node.span.end));
        assert!(1 <= node.first_line && node.first_line <= node.last_line);
        if let Some(parent) = node.parent {
            assert!(parent < index && reached[parent] <= node.span.start);
            assert!(node.span.end <= all[parent].span.end);
            reached[parent] = node.span.end;
        }
        for inside in &node.inside {
            // Text missing from the parent is in the node or in its children.
            assert!(node.span.start <= inside.start && inside.end <= node.span.end);
            assert!(text.get(inside.clone()).is_some());
        }
        assert!(parts.text_of(&text, index).len() <= node.span.len());
    }
});
