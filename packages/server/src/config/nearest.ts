/**
 * The word that was probably meant by an unknown one.
 *
 *   nearest('--prodct', ['--product', '--json']) → '--product', or undefined where nothing is like it
 */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: distanceOf(word, candidate) }))
    .sort((a, b) => a.distance - b.distance)
  const [best] = ranked
  if (best === undefined) return undefined
  // Half of a short word may only be wrong by a transposition; of a long one no more than a third is a slip.
  const bound = Math.max(2, Math.floor(bare(word).length / 3))
  if (best.distance <= bound && best.distance < bare(best.candidate).length) return best.candidate
  // A word that was not typed to its end.
  return bare(word).length < 2 ? undefined : candidates.find((candidate) => candidate.startsWith(word))
}

/** Dashes are alike in all options, and would make short ones look similar. */
const bare = (word: string) => word.replace(/^-+/, '')

/** Optimal string alignment: insertions, deletions, substitutions, and neighbours that changed places. */
function distanceOf(from: string, to: string): number {
  const [a, b] = [bare(from).toLowerCase(), bare(to).toLowerCase()]
  let [older, old] = [[] as number[], Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      const best = Math.min((old[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (old[j - 1] ?? 0) + cost)
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row.push(isSwapped ? Math.min(best, (older[j - 2] ?? 0) + 1) : best)
    }
    ;[older, old] = [old, row]
  }
  return old[b.length] ?? 0
}
