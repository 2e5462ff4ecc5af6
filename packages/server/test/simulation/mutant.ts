/* Lives one seed after another, and says which one shows something first: `bun mutant.ts NODES USERS SECONDS FROM TO usual|own plain|all|desk`. */
import { live, type WorldOptions } from './world.ts'

const [nodes, users, seconds, from, to] = process.argv.slice(2, 7).map(Number) as [
  number,
  number,
  number,
  number,
  number,
]
const [mix, who] = process.argv.slice(7, 9)
const faults: Pick<WorldOptions, 'mix' | 'people'> = {
  ...(mix === 'usual' && { mix: 'usual' }),
  ...((who === 'plain' || who === 'desk') && { people: who }),
}

/** What is wrong in the world of a seed, in a word. */
async function wrongIn(seed: number): Promise<string | undefined> {
  try {
    const { verdict } = await live({ seed, nodes, users, seconds, ...faults })
    return verdict.violations[0]?.kind
  } catch {
    return 'failure'
  }
}

let found: { readonly seed: number; readonly kind: string } | undefined
for (let seed = from; seed <= to && found === undefined; seed++) {
  const kind = await wrongIn(seed)
  if (kind !== undefined) found = { seed, kind }
  else console.log(seed)
}
console.log(JSON.stringify(found ?? null))
process.exit(0)
