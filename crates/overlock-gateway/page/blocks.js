// Compares the context blocks before and after a step: which were kept, moved, changed, new,
// repeated or removed.
//
// Each block before matches at most one block after, so the counts add up on both sides.

import { counted, number } from './words.js';

/** The id of the node that a block shows, if it shows one. */
function nodeId(block) {
  const [first, second = ''] = block.trimStart().split('\n', 2);
  return first.trim() === '--- NODE ---' && second.startsWith('id:')
    ? second.slice(3).trim() || undefined
    : undefined;
}

/**
 * Matches the blocks before and after. `after` has a `{kind, block}` for each block after, with the
 * number of the block that it was (`kept`, `moved`, `changed`) or that it repeats (`repeated`,
 * `repeated-node`). `removed` lists the places of the blocks that are gone. A `divider` is not
 * counted as a block.
 */
export function compared(before, after, divider) {
  const [keysBefore, keys] = [before, after].map((blocks) => blocks.map((block) => block.trim()));
  const places = queues(keysBefore);
  const changes = keys.map((key) => {
    const at = places.get(key)?.next().value;
    if (divider && key === divider) return { kind: 'divider', from: at };
    return at === undefined ? undefined : { kind: 'kept', from: at };
  });
  const inPlace = inOrder(changes.filter((change) => change?.kind === 'kept').map(({ from }) => from));
  for (const change of changes)
    if (change?.kind === 'kept' && !inPlace.has(change.from)) change.kind = 'moved';
  const removed = new Set(keysBefore.keys());
  for (const change of changes) removed.delete(change?.from);
  const isMatched = changes.every(Boolean);
  const removedNodes = isMatched ? [] : before.map((block, at) => removed.has(at) && nodeId(block));
  const nodes = queues(removedNodes);
  const [firstOfKey, firstOfNode] = [new Map(), new Map()];
  keys.forEach((key, at) => {
    const node = isMatched ? undefined : nodeId(after[at]);
    const [same, sameNode] = [firstOfKey.get(key), node && firstOfNode.get(node)];
    if (same === undefined) firstOfKey.set(key, at);
    if (node && sameNode === undefined) firstOfNode.set(node, at);
    if (changes[at]) return;
    if (same !== undefined) {
      changes[at] = { kind: 'repeated', block: same + 1 };
      return;
    }
    const was = node && nodes.get(node)?.next().value;
    if (was !== undefined) {
      changes[at] = { kind: 'changed', from: was };
      removed.delete(was);
    } else if (sameNode !== undefined) changes[at] = { kind: 'repeated-node', block: sameNode + 1 };
    else changes[at] = { kind: 'new' };
  });
  return {
    after: changes.map((change) =>
      change.from === undefined ? change : { kind: change.kind, block: change.from + 1 },
    ),
    removed: [...removed].filter((at) => !divider || keysBefore[at] !== divider),
  };
}

/** The places of each key, as iterators. */
function queues(keys) {
  const places = new Map();
  keys.forEach((key, at) => {
    if (places.has(key)) places.get(key).push(at);
    else places.set(key, [at]);
  });
  return new Map([...places].map(([key, all]) => [key, all.values()]));
}

/** The longest increasing subsequence of places, as a set. */
function inOrder(places) {
  // Each pile holds the last places of subsequences of one length, in decreasing order.
  const piles = [];
  const before = new Map();
  for (const place of places) {
    const length = firstWhere(piles.length, (at) => piles[at].at(-1) > place);
    const pile = piles[length - 1];
    if (pile) before.set(place, pile[firstWhere(pile.length, (at) => pile[at] < place)]);
    if (length === piles.length) piles.push([place]);
    else piles[length].push(place);
  }
  const ordered = new Set();
  for (let place = piles.at(-1)?.[0]; place !== undefined; place = before.get(place))
    ordered.add(place);
  return ordered;
}

/** Binary search: the first number below a limit for which `holds` is true, or the limit. */
function firstWhere(limit, holds) {
  let [low, high] = [0, limit];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

const KINDS = [
  ['kept', 'kept'],
  ['moved', 'moved'],
  ['changed', 'changed'],
  ['new', 'new'],
  ['repeated', 'repeated'],
  ['repeated-node', 'repeated in another form'],
];

/** The comparison in one line. */
export function comparison(changes) {
  const count = (kind) => changes.after.filter((change) => change.kind === kind).length;
  const dividers = count('divider');
  const parts = KINDS.filter(([kind]) => count(kind) > 0).map(
    ([kind, word]) => `${number(count(kind))} ${word}`,
  );
  if (changes.removed.length > 0) parts.push(`${number(changes.removed.length)} removed`);
  const matched = ['kept', 'moved', 'changed'].reduce((sum, kind) => sum + count(kind), 0);
  const before = matched + changes.removed.length;
  const rest = dividers > 0 ? `, and ${counted(dividers, 'divider')}` : '';
  return `Context blocks: ${number(before)} before, ${number(changes.after.length - dividers)} after${parts.length > 0 ? ` (${parts.join(', ')})` : ''}${rest}`;
}

/** What happened to a block. */
export function changeText({ kind, block }) {
  if (kind === 'moved') return `moved, was block ${number(block)}`;
  if (kind === 'changed') return `another form of the former block ${number(block)}`;
  if (kind === 'repeated') return `repeats block ${number(block)}`;
  if (kind === 'repeated-node') return `repeats block ${number(block)} in another form`;
  if (kind === 'divider') return 'the divider before new blocks';
  return kind;
}
