//! Which engines are there? Every law of the suite is a test for each of them.

use std::any::Any;
use std::sync::Arc;

use overlock_store::{Access, Store, StoreAddress, open};

/// A store that nobody has written to yet.
pub(crate) struct Fresh {
    pub(crate) store: Arc<dyn Store>,
    address: StoreAddress,
    /// What is taken away with it.
    _around: Box<dyn Any + Send + Sync>,
}

impl Fresh {
    /// A store at an address, with what is to be taken away when it is not needed any more.
    fn at(address: StoreAddress, around: impl Any + Send + Sync) -> Self {
        Self {
            store: open(&address, Access::Make).expect("a store"),
            address,
            _around: Box::new(around),
        }
    }

    /// The same store as another process has it.
    pub(crate) fn again(&self) -> Arc<dyn Store> {
        open(&self.address, Access::Make).expect("a store")
    }
}

fn sqlite() -> Fresh {
    let folder = tempfile::tempdir().expect("a folder");
    let address = StoreAddress::Sqlite(folder.path().join("store.db"));
    Fresh::at(address, folder)
}

/// Makes a test of every law, for one engine.
macro_rules! hold_for {
    ($engine:ident: $($theme:ident { $($law:ident)+ })+) => {
        mod $engine {
            $(mod $theme {
                $(
                    #[test]
                    fn $law() {
                        crate::$theme::$law(&crate::engines::$engine());
                    }
                )+
            })+
        }
    };
}

/// The laws, for as many engines as are named.
macro_rules! laws_hold_for {
    ($($engine:ident)+) => {
        $(hold_for! {
            $engine:
            indexing {
                gives_back_what_it_was_given
                a_file_that_is_put_again_is_replaced
                removing_a_file_leaves_nothing_of_it
                all_files_of_a_call_are_kept_or_none
                contradictions_are_refused_with_words
                repositories_do_not_mix
                hostile_texts_are_kept_as_they_are
                what_was_written_is_there_for_the_next
            }
            resolving {
                a_mention_finds_what_comes_later
                edges_go_with_either_end
                two_mentions_of_one_thing_are_one_edge
                parents_contain_their_children
                an_unchanged_repository_costs_nothing
                a_change_costs_what_speaks_of_it
                edges_are_those_of_an_index_made_anew
            }
            searching {
                words_find_identifiers
                all_words_come_before_any
                a_name_comes_before_those_who_mention_it
                the_rarest_word_decides_where_not_all_are_found
                questions_are_about_their_words
                filters_hold
                what_is_gone_or_changed_is_not_found_any_more
                hostile_queries_are_only_words
                limits_hold
            }
            vectors {
                the_nearest_come_first
                a_changed_text_loses_its_vector_and_an_unchanged_one_keeps_it
                nodes_without_a_vector_are_told_once
                filters_hold_for_vectors
                both_ways_of_searching_come_together
                the_writes_of_others_are_seen
                vectors_that_cannot_be_compared_are_refused
                almost_nothing_is_missed_among_vectors_by_chance
                almost_nothing_is_missed_among_vectors_in_clusters
            }
            walking {
                a_walk_goes_from_the_nearest_to_the_farthest
                a_walk_follows_the_kinds_and_the_direction_it_is_told
                a_walk_ends_where_it_is_told
                a_walk_is_as_far_as_the_plain_search_says
                edges_among_nodes_are_told
            }
            rooms {
                the_last_messages_come_in_their_order
                messages_of_several_at_once_do_not_come_between
                rooms_are_listed
            }
            memories {
                the_most_important_come_first
                what_is_too_old_or_not_important_is_left_out
            }
        })+
    };
}

laws_hold_for! { sqlite }
