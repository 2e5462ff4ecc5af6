import { Random } from '../fuzz/random.ts'

/** Faults that are drawn together. */
export const families = [
  'node killed',
  'node terminated',
  'node stopped',
  'node cut from Redis',
  'node cut from PostgreSQL',
  'poor link',
  'Redis away',
  'PostgreSQL away',
  'all nodes stopped',
] as const
export type Family = (typeof families)[number]

/** What is likely to go wrong in a world, and how soon after one another. */
export interface Mix {
  /** In a few words. */
  readonly name: string
  /** How likely each family is, against the others; undefined: as in every world before there were mixes. */
  readonly weights?: Readonly<Record<Family, number>>
  /** Time with nothing wrong between two faults, in ms: from this to twice this. */
  readonly quietMs: number
  /** How often something else goes wrong meanwhile, and how often that is at the same node. */
  readonly doubleChance: number
  readonly sameChance: number
}

/** The mix of the seeds that were recorded before each seed drew its own. */
export const usualMix: Mix = { name: 'usual', quietMs: 1_500, doubleChance: 0.2, sameChance: 0.5 }

/** How often a seed has the usual mix, and how often it has one family most. */
const usualChance = 0.25
const favouriteChance = 0.8
/** The share of a seed's faults that its favourite family has. */
const favouriteShare = 0.75
/** Nothing else can happen while all nodes stand still. */
const rareWeight = 0.2
const quiets = [300, 800, 1_500, 4_000] as const
const doubles = [0.05, 0.2, 0.5, 0.8] as const

/** The mix of a seed. It takes nothing from the numbers that the rest of the world is drawn from. */
export function mixOf(seed: number): Mix {
  const random = new Random(Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b))
  if (random.chance(usualChance)) return usualMix
  const frequent = families.filter((family) => family !== 'all nodes stopped')
  const favourite = random.chance(favouriteChance) ? random.pick(frequent) : undefined
  const weights = Object.fromEntries(
    families.map((family) => [family, family === 'all nodes stopped' ? rareWeight : 1 + random.int(4)]),
  ) as Record<Family, number>
  if (favourite !== undefined) {
    weights[favourite] = 0
    weights[favourite] = (sumOf(weights) * favouriteShare) / (1 - favouriteShare)
  }
  const [quietMs, doubleChance] = [random.pick(quiets), random.pick(doubles)]
  const name = `mostly ${favourite ?? 'nothing in particular'}, ${quietMs} ms apart, ${doubleChance * 100} % double`
  return { name, weights, quietMs, doubleChance, sameChance: usualMix.sameChance }
}

/** One of the families, by their weights. */
export function drawFamily(weights: Readonly<Record<Family, number>>, random: Random): Family {
  let left = (random.int(1_000_000) / 1_000_000) * sumOf(weights)
  for (const family of families) {
    left -= weights[family]
    if (left < 0) return family
  }
  return families[0]
}

function sumOf(weights: Readonly<Record<Family, number>>): number {
  return Object.values(weights).reduce((sum, weight) => sum + weight, 0)
}
