/**
 * A product that nobody has heard of is a slip of its name, or of the directory.
 *
 *   requireKnown(surroundings, store, config, product) → ends the command unless the service has a key or settings for it
 */
import type { Config } from '../config/config.ts'
import { CommandFailure, exitCodes, type OpenStore, type Surroundings, visible } from './command.ts'
import { isBootstrapped, knownProducts, placeOfKeys, shellWord } from './signing.ts'

export async function requireKnown(
  surroundings: Pick<Surroundings, 'now'>,
  store: Pick<OpenStore, 'products' | 'calls'>,
  config: Config,
  product: string,
): Promise<void> {
  const problem = await whyUnknown(surroundings, store, config, product)
  if (problem !== undefined) throw new CommandFailure(exitCodes.negative, visible(problem))
}

export async function whyUnknown(
  { now }: Pick<Surroundings, 'now'>,
  { products, calls }: Pick<OpenStore, 'products' | 'calls'>,
  config: Config,
  product: string,
): Promise<string | undefined> {
  if (isBootstrapped(config, product)) return undefined
  const keys = await products.listKeys(now())
  if (keys.some((key) => key.products.includes(product))) return undefined
  if ((await products.listSettings()).some((one) => one.product === product)) return undefined
  const page = { product, participant: undefined, statuses: undefined, since: 0, limit: 1, after: undefined }
  if ((await calls.list(page)).calls.length > 0) return undefined
  return `There is no product ${product} in ${placeOfKeys(config)}. ${knownProducts(keys)} To make one: ringwire keys create --product ${shellWord(product)}`
}
