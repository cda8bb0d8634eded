// The context before and after a step: which blocks stayed, moved, changed their form, are new, or
// are there twice.
//
// Every block before stands for one block after at most, so that what is counted adds up: those that
// stayed, moved, changed, are new or repeat another are all there are after, and those that stayed,
// moved, changed or went are all there were before.

import { counted, number } from './words.js';

/** The node that a block shows, if it shows one. */
function shownNode(block) {
  const [first, second = ''] = block.trimStart().split('\n', 2);
  return first.trim() === '--- NODE ---' && second.startsWith('id:')
    ? second.slice(3).trim() || undefined
    : undefined;
}

/**
 * What became of each block: `after` has one `{kind, block}` for each, with the number of the block
 * that it was (`stayed`, `moved`, `changed`) or that it repeats (`again`, `other`), and `gone` the
 * places of those that are not there any more. A `divider` is no block of the context.
 */
export function compared(found, after, divider) {
  const [keysFound, keys] = [found, after].map((blocks) => blocks.map((block) => block.trim()));
  const places = queues(keysFound);
  const fates = keys.map((key) => {
    const at = places.get(key)?.next().value;
    if (divider && key === divider) return { kind: 'divider', from: at };
    return at === undefined ? undefined : { kind: 'stayed', from: at };
  });
  const stay = inOrder(fates.filter((fate) => fate?.kind === 'stayed').map(({ from }) => from));
  for (const fate of fates)
    if (fate?.kind === 'stayed' && !stay.has(fate.from)) fate.kind = 'moved';
  const left = new Set(keysFound.keys());
  for (const fate of fates) left.delete(fate?.from);
  const isAllThere = fates.every(Boolean);
  const shownFound = isAllThere ? [] : found.map((block, at) => left.has(at) && shownNode(block));
  const nodes = queues(shownFound);
  const [firstOfKey, firstOfNode] = [new Map(), new Map()];
  keys.forEach((key, at) => {
    const node = isAllThere ? undefined : shownNode(after[at]);
    const [same, other] = [firstOfKey.get(key), node && firstOfNode.get(node)];
    if (same === undefined) firstOfKey.set(key, at);
    if (node && other === undefined) firstOfNode.set(node, at);
    if (fates[at]) return;
    if (same !== undefined) {
      fates[at] = { kind: 'again', block: same + 1 };
      return;
    }
    const was = node && nodes.get(node)?.next().value;
    if (was !== undefined) {
      fates[at] = { kind: 'changed', from: was };
      left.delete(was);
    } else if (other !== undefined) fates[at] = { kind: 'other', block: other + 1 };
    else fates[at] = { kind: 'new' };
  });
  return {
    after: fates.map((fate) =>
      fate.from === undefined ? fate : { kind: fate.kind, block: fate.from + 1 },
    ),
    gone: [...left].filter((at) => !divider || keysFound[at] !== divider),
  };
}

/** The places of each that are equal, to be taken one after the other. */
function queues(keys) {
  const places = new Map();
  keys.forEach((key, at) => {
    if (places.has(key)) places.get(key).push(at);
    else places.set(key, [at]);
  });
  return new Map([...places].map(([key, all]) => [key, all.values()]));
}

/** The longest run of places that are still in their order. */
function inOrder(places) {
  // In each pile the last places of runs of one length, of which every later one is smaller.
  const piles = [];
  const before = new Map();
  for (const place of places) {
    const length = firstWhere(piles.length, (at) => piles[at].at(-1) > place);
    const pile = piles[length - 1];
    if (pile) before.set(place, pile[firstWhere(pile.length, (at) => pile[at] < place)]);
    if (length === piles.length) piles.push([place]);
    else piles[length].push(place);
  }
  const stay = new Set();
  for (let place = piles.at(-1)?.[0]; place !== undefined; place = before.get(place))
    stay.add(place);
  return stay;
}

/** The first number below a limit from which on something holds, or the limit. */
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
  ['stayed', 'stayed'],
  ['moved', 'moved'],
  ['changed', 'in another form'],
  ['new', 'new'],
  ['again', 'the same as another'],
  ['other', 'another in other form'],
];

/** How the blocks before and after compare, in a line. */
export function comparison(fates) {
  const count = (kind) => fates.after.filter((fate) => fate.kind === kind).length;
  const dividers = count('divider');
  const parts = KINDS.filter(([kind]) => count(kind) > 0).map(
    ([kind, word]) => `${number(count(kind))} ${word}`,
  );
  if (fates.gone.length > 0) parts.push(`${number(fates.gone.length)} left out`);
  const kept = ['stayed', 'moved', 'changed'].reduce((sum, kind) => sum + count(kind), 0);
  const before = kept + fates.gone.length;
  const rest = dividers > 0 ? `, and ${counted(dividers, 'divider')}` : '';
  return `Context blocks: ${number(before)} before, ${number(fates.after.length - dividers)} after${parts.length > 0 ? ` (${parts.join(', ')})` : ''}${rest}`;
}

/** What became of a block. */
export function told({ kind, block }) {
  if (kind === 'stayed') return 'was there';
  if (kind === 'moved') return `was there, and moved from place ${number(block)}`;
  if (kind === 'changed') return `in another form than block ${number(block)} before`;
  if (kind === 'again') return `again: the same as block ${number(block)}`;
  if (kind === 'other') return `again: block ${number(block)} shows it in another form`;
  if (kind === 'divider') return 'the divider before what is new';
  return 'new';
}
