//! Which words is a text found by?
//!
//! Identifiers are taken apart where their parts meet, so that `order service` finds
//! `OrderService`, `order_service` and `ORDER_SERVICE`. Texts and queries are taken apart alike,
//! and by every engine: what is found does not depend on where it is kept.

use std::collections::HashSet;

/// Nobody looks for more of a word than this.
const LONGEST_WORD: usize = 64;

/// Nobody means more words than this.
const MOST_WORDS: usize = 32;

/// Words of questions that say nothing about code.
const FILLERS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "could", "did", "do", "does", "for",
    "from", "has", "have", "how", "i", "if", "in", "is", "it", "its", "me", "my", "of", "on", "or",
    "our", "should", "that", "the", "their", "then", "there", "these", "this", "those", "to",
    "was", "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would",
    "you", "your",
];

/// The words of a text in their order, in lower case, with a space between them.
pub(crate) fn of_text(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    each(text, |word| push(&mut words, word));
    words
}

/// The words of a name, and those of its parts that were taken apart together as well, so that it
/// is also found by whoever writes it in one.
pub(crate) fn of_name(name: &str) -> String {
    let mut words = of_text(name);
    for part in name.split(|character: char| !is_of_name(character)) {
        let whole = joined(part);
        let is_one_word = words.split(' ').any(|word| word == whole);
        if !whole.is_empty() && !is_one_word {
            push(&mut words, &whole);
        }
    }
    words
}

/// The different words of a query, without those that only make it a question.
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
    // Who asks for nothing else means them.
    if words.is_empty() { fillers } else { words }
}

/// A name without what its parts are separated by, to tell whether a query says just that.
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

/// Calls for every word of a text.
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
        // A figure belongs to what it follows.
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

/// What a character is to a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Letter {
    /// It separates words.
    None,
    Lower,
    Upper,
    /// It is a word, as in languages that put nothing between words.
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
    fn takes_identifiers_apart_where_their_parts_meet() {
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
    fn knows_letters_of_every_language() {
        check("GrößeÄndern", "größe ändern");
        check("注文サービス order", "注 文 サ ー ビ ス order");
        check("ЗаказСервис", "заказ сервис");
        check("👍 -- \0 \"'*^", "");
    }

    #[test]
    fn a_name_is_found_in_one_and_in_parts() {
        assert_eq!(
            of_name("Shop.OrderService"),
            "shop order service orderservice"
        );
        assert_eq!(of_name("order_id"), "order id orderid");
        assert_eq!(of_name("orders"), "orders");
    }

    #[test]
    fn a_question_is_about_its_other_words() {
        let query = "How does the OrderService place an order?";
        assert_eq!(of_query(query), ["order", "service", "place"]);
        assert_eq!(of_query("what is this"), ["what", "is", "this"]);
        assert_eq!(of_query("?!"), Vec::<String>::new());
    }

    #[test]
    fn long_words_and_long_queries_are_cut_alike() {
        let long = "x".repeat(1_000_000);
        assert_eq!(of_text(&long), "x".repeat(LONGEST_WORD));
        assert_eq!(of_query(&long), ["x".repeat(LONGEST_WORD)]);
        let many: Vec<String> = (0..100_000).map(|number| format!("w{number}")).collect();
        assert_eq!(of_query(&many.join(" ")).len(), MOST_WORDS);
    }
}
