//! Cases with figures that can be checked by hand, the laws, and an oracle that tries everything.

use std::cmp::Reverse;

use proptest::prelude::*;

use super::*;

fn flexible(name: &str, basis: u64, priority: i32) -> Item<'_> {
    Item {
        shrink: 1,
        priority,
        ..Item::required(name, basis)
    }
}

/// Checks the shares; a dropped item is `None`.
#[track_caller]
fn check(items: &[Item], window: u64, gap: u64, expected: &[Option<u64>]) -> Solution {
    let solution = flex(items, &FlexOptions { window, gap }).expect("it fits");
    assert_eq!(given(&solution), expected, "{window} for {items:#?}");
    solution
}

fn given(solution: &Solution) -> Vec<Option<u64>> {
    let shares = solution.shares.iter();
    shares
        .map(|share| (!share.is_dropped()).then_some(share.given))
        .collect()
}

#[test]
fn gives_preferred_sizes_if_they_fit() {
    let items = [Item::required("a", 100), Item::droppable("b", 200)];
    let solution = check(&items, 1000, 100, &[Some(100), Some(200)]);
    assert_eq!(solution.unused, 600);
    assert_eq!(solution.blocker, None);
}

#[test]
fn nothing_in_an_empty_window_is_a_solution() {
    check(&[], 0, 0, &[]);
    check(&[Item::droppable("a", 1)], 0, 0, &[None]);
}

#[test]
fn divides_remaining_tokens_by_weight_exactly() {
    let growing = |grow| Item {
        grow,
        ..Item::required("a", 0)
    };
    let items = [growing(1), growing(1), growing(1)];
    check(&items, 100, 0, &[Some(34), Some(33), Some(33)]);
    let items = [growing(1), growing(2), growing(4)];
    // 14.29, 28.57, 57.14: the largest remainder is in the middle.
    check(&items, 100, 0, &[Some(14), Some(29), Some(57)]);
}

#[test]
fn tokens_above_a_maximum_go_to_the_others() {
    let items = [
        Item {
            grow: 8,
            max: Some(10),
            ..Item::required("small", 0)
        },
        Item {
            grow: 1,
            ..Item::required("large", 0)
        },
    ];
    let solution = check(&items, 100, 0, &[Some(10), Some(90)]);
    let change = solution.shares[0].change.to_string();
    assert_eq!(change, "grew by 10 (weight 8 of 9), to its maximum");
}

#[test]
fn a_maximum_that_leaves_room_unused_is_named() {
    let items = [
        Item {
            grow: 1,
            max: Some(60),
            ..Item::required("memories", 50)
        },
        Item {
            grow: 2,
            max: Some(70),
            ..Item::required("answer", 50)
        },
    ];
    let solution = check(&items, 200, 0, &[Some(60), Some(70)]);
    assert_eq!(solution.unused, 70);
    let expected = Blocker::Ceiling {
        index: 1,
        tokens: 70,
    };
    assert_eq!(solution.blocker, Some(expected));
}

#[test]
fn the_lowest_priority_shrinks_first_and_completely() {
    let items = [
        flexible("history", 500, 60),
        Item {
            min: 100,
            ..flexible("answer", 500, 30)
        },
    ];
    check(&items, 800, 0, &[Some(500), Some(300)]);
    let solution = check(&items, 400, 0, &[Some(300), Some(100)]);
    let changes: Vec<_> = solution
        .shares
        .iter()
        .map(|share| share.change.to_string())
        .collect();
    assert_eq!(
        changes,
        [
            "shrank by 200 (weight 1 of 1)",
            "shrank by 400 (weight 1 of 1), to its minimum"
        ]
    );
    let expected = Blocker::Floor {
        index: 1,
        tokens: 100,
    };
    assert_eq!(solution.blocker, Some(expected));
}

#[test]
fn names_the_largest_item_that_shrinks_later() {
    let items = [
        Item::required("system prompt", 20),
        flexible("history", 500, 60),
        flexible("answer", 500, 30),
    ];
    let solution = check(&items, 800, 0, &[Some(20), Some(500), Some(280)]);
    let expected = Blocker::Priority {
        index: 1,
        tokens: 500,
    };
    assert_eq!(solution.blocker, Some(expected));
}

#[test]
fn only_a_larger_window_helps_without_minimums() {
    let solution = check(&[flexible("history", 500, 60)], 300, 0, &[Some(300)]);
    assert_eq!(solution.blocker, Some(Blocker::Window));
}

#[test]
fn drops_the_lowest_priority_first_and_of_equals_the_last() {
    let block = |name, priority| Item {
        priority,
        ..Item::droppable(name, 100)
    };
    let items = [block("a", 50), block("b", 50), block("c", 70)];
    check(&items, 250, 0, &[Some(100), None, Some(100)]);
    let solution = check(&items, 199, 0, &[None, None, Some(100)]);
    assert_eq!(solution.unused, 99);
    let change = solution.shares[1].change.to_string();
    assert_eq!(change, "dropped: it needs at least 100");
}

#[test]
fn shrinks_before_it_drops_and_reuses_freed_tokens() {
    let items = [
        Item {
            min: 100,
            ..flexible("history", 500, 60)
        },
        Item {
            priority: 50,
            ..Item::droppable("context", 300)
        },
    ];
    check(&items, 400, 0, &[Some(100), Some(300)]);
    check(&items, 399, 0, &[Some(399), None]);
}

#[test]
fn an_item_without_shrink_keeps_its_size() {
    let items = [
        Item {
            priority: 0,
            ..Item::required("system", 300)
        },
        flexible("history", 300, 60),
    ];
    check(&items, 400, 0, &[Some(300), Some(100)]);
}

#[test]
fn a_refusal_names_the_excess_and_what_would_help() {
    let items = [
        Item::required("system prompt", 7000),
        Item::droppable("context", 5000),
        Item {
            min: 500,
            ..flexible("answer", 3000, 30)
        },
    ];
    let options = FlexOptions {
        window: 7000,
        gap: 100,
    };
    let error = flex(&items, &options).expect_err("it cannot fit");
    assert_eq!(
        error.to_string(),
        "what must be in the window needs 7500 tokens and a margin of 100, which is 600 more than \
         the window of 7000; the largest part is `system prompt`"
    );
    let FlexError::TooLarge { help, .. } = error else {
        panic!("{error}");
    };
    let help: Vec<_> = help.iter().map(Help::to_string).collect();
    assert_eq!(
        help,
        [
            "shorten `system prompt` from 7000 to 6400 tokens",
            "use a model with a window of at least 7600 tokens"
        ]
    );
}

#[test]
fn refuses_a_margin_larger_than_the_window() {
    let options = FlexOptions { window: 5, gap: 6 };
    let error = flex(&[], &options).expect_err("it cannot fit");
    assert!(matches!(
        error,
        FlexError::TooLarge {
            over: 1,
            largest: None,
            ..
        }
    ));
}

#[test]
fn refuses_a_minimum_above_the_maximum() {
    let item = Item {
        min: 2,
        max: Some(1),
        ..Item::required("answer", 1)
    };
    let options = FlexOptions { window: 9, gap: 0 };
    let error = flex(&[item], &options).expect_err("the bounds contradict each other");
    assert_eq!(
        error.to_string(),
        "`answer` has a minimum of 2 above its maximum of 1"
    );
}

/// Items with sizes below `size`, whose bounds never contradict each other.
fn items(size: u64, count: usize) -> impl Strategy<Value = Vec<Item<'static>>> {
    let bounds = (0..=size, 0..=size, prop::option::of(0..=size));
    let weights = (0..4_u32, 0..4_u32);
    let item = (bounds, weights, 0..4_i32, any::<bool>()).prop_map(
        |((basis, min, extra), (grow, shrink), priority, droppable)| Item {
            name: "item",
            basis,
            grow,
            shrink,
            min,
            max: extra.map(|extra| min.saturating_add(extra)),
            priority,
            droppable,
        },
    );
    prop::collection::vec(item, 0..=count)
}

/// Whether `one` must give way before `other`.
fn before(items: &[Item], one: usize, other: usize) -> bool {
    (items[one].priority, Reverse(one)) < (items[other].priority, Reverse(other))
}

fn required_floors(items: &[Item]) -> u128 {
    let required = items.iter().filter(|item| !item.droppable);
    required.map(|item| u128::from(item.floor())).sum()
}

fn check_laws(items: &[Item], window: u64, gap: u64) -> Result<(), TestCaseError> {
    let options = FlexOptions { window, gap };
    let must = required_floors(items) + u128::from(gap);
    let Ok(solution) = flex(items, &options) else {
        prop_assert!(must > u128::from(window), "refused without need");
        return Ok(());
    };
    prop_assert!(must <= u128::from(window));
    let Solution { shares, unused, .. } = &solution;
    prop_assert_eq!(&solution, &flex(items, &options).expect("it fitted before"));

    let handed_out: u128 = shares.iter().map(|share| u128::from(share.given)).sum();
    let sum = handed_out + u128::from(gap) + u128::from(*unused);
    prop_assert_eq!(sum, u128::from(window), "what is handed out adds up");

    // In the order in which items give way, so that one pass sees who gave before whom.
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|&one, &other| (before(items, other, one)).cmp(&before(items, one, other)));
    let mut stays = false;
    let mut lowest_above_floor = i32::MAX;
    let mut next_in_line = None;
    for &index in &order {
        let (item, share) = (&items[index], &shares[index]);
        if share.is_dropped() {
            prop_assert!(item.droppable, "a required item is never dropped");
            prop_assert!(!stays, "dropped while one of lower priority stays");
            next_in_line = Some(item.floor());
            continue;
        }
        stays |= item.droppable;
        prop_assert!((item.floor()..=item.ceiling()).contains(&share.given));
        if share.given < item.wanted() {
            prop_assert!(
                lowest_above_floor >= item.priority,
                "a lower one had more to give"
            );
        }
        if share.given > item.floor() {
            lowest_above_floor = lowest_above_floor.min(item.priority);
        }
        if share.given > item.wanted() {
            let shrank = shares
                .iter()
                .any(|other| matches!(other.change, Change::Shrank { .. }));
            prop_assert!(!shrank, "one grew while another shrank");
        }
        let could_use = item.grow > 0 && share.given < item.ceiling();
        prop_assert!(
            *unused == 0 || !could_use,
            "unused although it could be used"
        );
        check_change(item, share)?;
    }
    if let Some(floor) = next_in_line {
        prop_assert!(*unused < floor, "the next in line would have fitted");
    }
    Ok(())
}

/// Checks that the explanation of a share agrees with its figure.
fn check_change(item: &Item, share: &Share) -> Result<(), TestCaseError> {
    match share.change {
        Change::Basis => prop_assert_eq!(share.given, item.wanted()),
        Change::Grew {
            by, weight, to_max, ..
        } => {
            prop_assert_eq!(share.given, item.wanted() + by);
            prop_assert_eq!(weight, item.grow);
            prop_assert_eq!(to_max, item.max == Some(share.given));
        }
        Change::Shrank {
            by,
            weight,
            to_floor,
            ..
        } => {
            prop_assert_eq!(share.given + by, item.wanted());
            prop_assert_eq!(weight, item.shrink);
            prop_assert_eq!(to_floor, share.given == item.floor());
        }
        Change::Dropped { .. } => prop_assert!(false, "it was not dropped"),
    }
    Ok(())
}

/// The same solution, found by trying every set of items to drop and by freezing one item at a
/// time, as a flexbox is explained in textbooks.
fn oracle(items: &[Item], window: u64, gap: u64) -> Option<Vec<Option<u64>>> {
    let room = window.checked_sub(gap)?;
    let kept = (0..1_u32 << items.len())
        .map(|set| {
            (0..items.len())
                .filter(|index| set >> index & 1 == 1)
                .collect::<Vec<_>>()
        })
        .filter(|kept| {
            let dropped = (0..items.len()).filter(|index| !kept.contains(index));
            let fair = dropped.clone().all(|one| {
                let outlived = |&other: &usize| items[other].droppable && before(items, other, one);
                items[one].droppable && !kept.iter().any(outlived)
            });
            fair && kept.iter().map(|&index| items[index].floor()).sum::<u64>() <= room
        })
        .max_by_key(Vec::len)?;

    let mut sizes = vec![None; items.len()];
    for &index in &kept {
        sizes[index] = Some(items[index].wanted());
    }
    let total = |sizes: &[Option<u64>]| sizes.iter().flatten().sum::<u64>();
    for priority in 0..4 {
        let missing = total(&sizes).saturating_sub(room);
        let limit = |index: usize| {
            let peer = items[index].priority == priority;
            sizes[index]
                .filter(|_| peer)
                .map_or(0, |size| size - items[index].floor())
        };
        let limits: Vec<u64> = (0..items.len()).map(limit).collect();
        let weights: Vec<u32> = items.iter().map(|item| item.shrink).collect();
        let taken = freeze_one_at_a_time(missing, &limits, &weights);
        for (size, taken) in sizes.iter_mut().zip(taken) {
            *size = size.map(|size| size - taken);
        }
    }
    let left_over = room - total(&sizes);
    let limit = |index: usize| sizes[index].map_or(0, |size| items[index].ceiling() - size);
    let limits: Vec<u64> = (0..items.len()).map(limit).collect();
    let weights: Vec<u32> = items.iter().map(|item| item.grow).collect();
    let added = freeze_one_at_a_time(left_over, &limits, &weights);
    for (size, added) in sizes.iter_mut().zip(added) {
        *size = size.map(|size| size + added);
    }
    Some(sizes)
}

fn freeze_one_at_a_time(amount: u64, limits: &[u64], weights: &[u32]) -> Vec<u64> {
    let mut amounts = vec![0; limits.len()];
    let mut left = amount;
    let mut open: Vec<usize> = (0..limits.len())
        .filter(|&index| weights[index] > 0)
        .collect();
    loop {
        let sum: u64 = open.iter().map(|&index| u64::from(weights[index])).sum();
        let too_much = |&index: &usize| {
            let asked = u128::from(left) * u128::from(weights[index]);
            asked > u128::from(limits[index]) * u128::from(sum)
        };
        if let Some(place) = open.iter().position(too_much) {
            let index = open.remove(place);
            amounts[index] = limits[index];
            left -= limits[index];
            continue;
        }
        for &index in &open {
            amounts[index] = left * u64::from(weights[index]) / sum;
        }
        let mut rest = left - open.iter().map(|&index| amounts[index]).sum::<u64>();
        open.sort_by_key(|&index| Reverse(left * u64::from(weights[index]) % sum));
        for &index in &open {
            let one = rest.min(1);
            amounts[index] += one;
            rest -= one;
        }
        return amounts;
    }
}

/// The sizes that a browser's flexbox gives these items, which has no priorities and drops nothing.
fn in_a_browser(items: &[Item], window: u64) -> Vec<f32> {
    use taffy::prelude::*;

    // What a browser takes from an item is in proportion to its size as well, so weights are
    // divided by it; and it takes less than all if weights are less than one together.
    #[expect(clippy::cast_precision_loss, reason = "sizes are small")]
    let float = |number: u64| number as f32;
    let mut tree: TaffyTree = TaffyTree::new();
    let mut style = |item: &Item| {
        let style = Style {
            flex_basis: length(float(item.basis)),
            flex_grow: float(item.grow.into()),
            flex_shrink: 1000.0 * float(item.shrink.into()) / float(item.basis.max(1)),
            min_size: Size {
                width: length(float(item.min)),
                height: auto(),
            },
            max_size: Size {
                width: item.max.map_or(auto(), |max| length(float(max))),
                height: auto(),
            },
            ..Style::default()
        };
        tree.new_leaf(style).expect("a leaf is always taken")
    };
    let leaves: Vec<NodeId> = items.iter().map(&mut style).collect();
    let container = Style {
        size: Size {
            width: length(float(window)),
            height: length(1.0),
        },
        ..Style::default()
    };
    let root = tree.new_with_children(container, &leaves);
    let root = root.expect("the leaves are there");
    tree.disable_rounding();
    let laid_out = tree.compute_layout(root, Size::MAX_CONTENT);
    laid_out.expect("the tree is whole");
    let width = |leaf: &NodeId| tree.layout(*leaf).expect("it was laid out").size.width;
    leaves.iter().map(width).collect()
}

/// The value of a solution: the sizes up to the preferred ones, the highest priority first, then the
/// sum of all sizes.
fn worth(items: &[Item], sizes: &[u64]) -> Vec<u64> {
    let of_priority = |priority| {
        let peers = items
            .iter()
            .zip(sizes)
            .filter(move |(item, _)| item.priority == priority);
        peers.map(|(item, size)| item.wanted().min(*size)).sum()
    };
    let mut worth: Vec<u64> = (0..4).rev().map(of_priority).collect();
    worth.push(sizes.iter().sum());
    worth
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_properties_hold_in_small_windows(
        items in items(20, 8), window in 0..200_u64, gap in 0..20_u64,
    ) {
        check_laws(&items, window, gap)?;
    }

    #[test]
    fn the_properties_hold_for_every_size(items in items(u64::MAX, 4), window: u64, gap in 0..1000_u64) {
        check_laws(&items, window, gap)?;
    }

    #[test]
    fn the_properties_hold_for_usual_prompts(
        items in items(20_000, 20), window in 0..300_000_u64, gap in 0..200_u64,
    ) {
        check_laws(&items, window, gap)?;
    }

    #[test]
    fn a_larger_window_keeps_everything_of_a_smaller_one(
        items in items(20, 8), window in 0..200_u64, more in 0..50_u64,
    ) {
        let small = flex(&items, &FlexOptions { window, gap: 5 });
        let large = flex(&items, &FlexOptions { window: window + more, gap: 5 });
        if let Ok(small) = small {
            let large = large.expect("what fits a window fits a larger one");
            for (small, large) in small.shares.iter().zip(&large.shares) {
                prop_assert!(small.is_dropped() || !large.is_dropped());
            }
        }
    }

    #[test]
    fn the_solver_agrees_with_the_textbook(
        items in items(12, 6), window in 0..80_u64, gap in 0..5_u64,
    ) {
        let solution = flex(&items, &FlexOptions { window, gap });
        prop_assert_eq!(solution.ok().as_ref().map(given), oracle(&items, window, gap));
    }

    #[test]
    fn the_solver_agrees_with_a_browser(
        items in prop::collection::vec((1..500_u64, 0..500_u64, 0..500_u64, 0..4_u32, 1..4_u32), 1..8),
        window in 0..3000_u64,
    ) {
        let items: Vec<Item> = items
            .into_iter()
            .map(|(basis, less, more, grow, shrink)| Item {
                grow,
                shrink,
                min: basis.saturating_sub(less),
                max: Some(basis + more),
                ..Item::required("item", basis)
            })
            .collect();
        let Ok(solution) = flex(&items, &FlexOptions { window, gap: 0 }) else {
            return Ok(());
        };
        let browser = in_a_browser(&items, window);
        for (share, width) in solution.shares.iter().zip(browser) {
            #[expect(clippy::cast_precision_loss, reason = "sizes are small")]
            let difference = (share.given as f32 - width).abs();
            prop_assert!(difference <= 1.01, "{share:?} is {width} wide");
        }
    }

    #[test]
    fn no_other_division_is_better(items in items(5, 3), window in 0..16_u64) {
        let Ok(solution) = flex(&items, &FlexOptions { window, gap: 0 }) else {
            return Ok(());
        };
        let kept: Vec<bool> = solution.shares.iter().map(|share| !share.is_dropped()).collect();
        let sizes: Vec<u64> = solution.shares.iter().map(|share| share.given).collect();
        let reached = worth(&items, &sizes);

        // Every division of the window among those that stay.
        let mut divisions = vec![vec![]];
        for (item, kept) in items.iter().zip(&kept) {
            // Without a weight, an item does not grow, even if tokens remain.
            let most = if item.grow > 0 { item.ceiling().min(window) } else { item.wanted() };
            let sizes = if *kept { item.floor()..=most } else { 0..=0 };
            divisions = divisions
                .iter()
                .flat_map(|division: &Vec<u64>| {
                    sizes.clone().map(|size| [division.as_slice(), &[size]].concat())
                })
                .filter(|division| division.iter().sum::<u64>() <= window)
                .collect();
        }
        let best = divisions.iter().map(|division| worth(&items, division)).max();
        prop_assert_eq!(Some(reached), best);
    }
}
