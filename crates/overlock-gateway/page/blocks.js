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
  const key = (block) => block.trim();
  const places = new Map();
  found.forEach((block, at) => places.set(key(block), [...(places.get(key(block)) ?? []), at]));
  const fates = after.map((block) => {
    const at = places.get(key(block))?.shift();
    if (divider && key(block) === divider) return { kind: 'divider', from: at };
    return at === undefined ? undefined : { kind: 'stayed', from: at };
  });
  const stay = inOrder(fates.filter((fate) => fate?.kind === 'stayed').map(({ from }) => from));
  for (const fate of fates)
    if (fate?.kind === 'stayed' && !stay.has(fate.from)) fate.kind = 'moved';
  const used = new Set(fates.filter(Boolean).map(({ from }) => from));
  const left = found.map((_, at) => at).filter((at) => !used.has(at));
  const shown = after.map(shownNode);
  after.forEach((block, at) => {
    if (fates[at]) return;
    const was = left.findIndex((from) => shown[at] && shownNode(found[from]) === shown[at]);
    const same = after.slice(0, at).findIndex((other) => key(other) === key(block));
    const node = shown[at] ? shown.slice(0, at).indexOf(shown[at]) : -1;
    if (same >= 0) fates[at] = { kind: 'again', block: same + 1 };
    else if (was >= 0) fates[at] = { kind: 'changed', from: left.splice(was, 1)[0] };
    else if (node >= 0) fates[at] = { kind: 'other', block: node + 1 };
    else fates[at] = { kind: 'new' };
  });
  return {
    after: fates.map((fate) =>
      fate.from === undefined ? fate : { kind: fate.kind, block: fate.from + 1 },
    ),
    gone: left.filter((at) => !divider || key(found[at]) !== divider),
  };
}

/** The longest run of places that are still in their order. */
function inOrder(places) {
  const best = [];
  places.forEach((place, at) => {
    let [length, before] = [1, -1];
    for (let earlier = 0; earlier < at; earlier += 1)
      if (places[earlier] < place && best[earlier].length + 1 > length)
        [length, before] = [best[earlier].length + 1, earlier];
    best.push({ length, before });
  });
  let at = best.reduce(
    (most, one, place) => (one.length > (best[most]?.length ?? 0) ? place : most),
    -1,
  );
  const stay = new Set();
  for (; at >= 0; at = best[at].before) stay.add(places[at]);
  return stay;
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
