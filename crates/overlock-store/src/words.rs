//! Splits texts and queries into words.
//!
//! Identifiers are split at their parts, so that `order service` finds `OrderService`,
//! `order_service` and `ORDER_SERVICE`. All engines use this tokenizer, so that they find the same.

use std::collections::HashSet;

/// Longer words are cut off, in characters.
const LONGEST_WORD: usize = 64;

/// The most words of a query that are used.
const MOST_WORDS: usize = 32;

/// Stop words of questions.
const FILLERS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "could", "did", "do", "does", "for",
    "from", "has", "have", "how", "i", "if", "in", "is", "it", "its", "me", "my", "of", "on", "or",
    "our", "should", "that", "the", "their", "then", "there", "these", "this", "those", "to",
    "was", "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would",
    "you", "your",
];

/// The words of a text in order, in lower case, separated by spaces.
pub(crate) fn of_text(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    each(text, |word| push(&mut words, word));
    words
}

/// The words of a name, and each identifier also as one word, so that `orderservice` finds
/// `OrderService`.
pub(crate) fn of_name(name: &str) -> String {
    let mut words = of_text(name);
    for part in name.split(|character: char| !is_of_name(character)) {
        let identifier = joined(part);
        let is_known = words.split(' ').any(|word| word == identifier);
        if !identifier.is_empty() && !is_known {
            push(&mut words, &identifier);
        }
    }
    words
}

/// The distinct words of a query without stop words.
pub(crate) fn of_query(query: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut fillers: Vec<String> = Vec::new();
    let mut known = HashSet::new();
    each(query, |word| {
        if words.len() < MOST_WORDS && known.insert(word.to_owned()) {
            let is_filler = FILLERS.contains(&word);
            let list = if is_filler { &mut fillers } else { &mut words };
            list.push(word.to_owned());
        }
    });
    // A query of nothing but stop words searches for them.
    if words.is_empty() { fillers } else { words }
}

/// The letters of a name in lower case without separators, to compare it with a query.
pub(crate) fn joined(name: &str) -> String {
    let letters = name.chars().filter(|character| character.is_alphanumeric());
    letters
        .flat_map(char::to_lowercase)
        .take(LONGEST_WORD)
        .collect()
}

fn push(words: &mut String, word: &str) {
    if !words.is_empty() {
        words.push(' ');
    }
    words.push_str(word);
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Calls `found` for every word of a text.
fn each(text: &str, mut found: impl FnMut(&str)) {
    let mut word = String::new();
    let mut len = 0;
    let mut before = Letter::None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let letter = Letter::of(character);
        let ends_before = match (before, letter) {
            (Letter::Lower, Letter::Upper)
            | (_, Letter::None | Letter::Whole)
            | (Letter::Whole, _) => true,
            // `HTTPServer` is two words.
            (Letter::Upper, Letter::Upper) => characters
                .peek()
                .is_some_and(|next| Letter::of(*next) == Letter::Lower && !next.is_numeric()),
            _ => false,
        };
        if ends_before && !word.is_empty() {
            found(&word);
            word.clear();
            len = 0;
        }
        if letter != Letter::None && len < LONGEST_WORD {
            word.extend(character.to_lowercase());
            len += 1;
        }
        // A digit belongs to the word before it.
        before = if character.is_numeric() && before == Letter::Upper {
            Letter::Lower
        } else {
            letter
        };
    }
    if !word.is_empty() {
        found(&word);
    }
}

/// The class of a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Letter {
    /// A separator of words.
    None,
    Lower,
    Upper,
    /// A word of one character, as in languages without spaces between words.
    Whole,
}

impl Letter {
    fn of(character: char) -> Self {
        match character {
            'a'..='z' | '0'..='9' => Self::Lower,
            'A'..='Z' => Self::Upper,
            '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}'
                if character.is_alphanumeric() =>
            {
                Self::Whole
            }
            _ if character.is_uppercase() => Self::Upper,
            _ if character.is_alphanumeric() => Self::Lower,
            _ => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, words: &str) {
        assert_eq!(of_text(text), words, "the words of {text:?}");
    }

    #[test]
    fn splits_identifiers_into_their_parts() {
        check("OrderService", "order service");
        check("orderService.Place()", "order service place");
        check("order_service", "order service");
        check("ORDER_SERVICE", "order service");
        check("HTTPServer2Go", "http server2 go");
        check("IOrderID", "i order id");
        check("sha256 UTF8Text", "sha256 utf8 text");
        check("[dbo].[Order Details]", "dbo order details");
    }

    #[test]
    fn splits_words_of_every_language() {
        check("GrößeÄndern", "größe ändern");
        check("注文サービス order", "注 文 サ ー ビ ス order");
        check("ЗаказСервис", "заказ сервис");
        check("👍 -- \0 \"'*^", "");
    }

    #[test]
    fn a_name_is_also_one_word() {
        assert_eq!(
            of_name("Shop.OrderService"),
            "shop order service orderservice"
        );
        assert_eq!(of_name("order_id"), "order id orderid");
        assert_eq!(of_name("orders"), "orders");
    }

    #[test]
    fn drops_stop_words_unless_there_is_nothing_else() {
        let query = "How does the OrderService place an order?";
        assert_eq!(of_query(query), ["order", "service", "place"]);
        assert_eq!(of_query("what is this"), ["what", "is", "this"]);
        assert_eq!(of_query("?!"), Vec::<String>::new());
    }

    #[test]
    fn cuts_long_words_and_long_queries() {
        let long = "x".repeat(1_000_000);
        assert_eq!(of_text(&long), "x".repeat(LONGEST_WORD));
        assert_eq!(of_query(&long), ["x".repeat(LONGEST_WORD)]);
        let many: Vec<String> = (0..100_000).map(|number| format!("w{number}")).collect();
        assert_eq!(of_query(&many.join(" ")).len(), MOST_WORDS);
    }
}
