import type { Setting } from './setting.ts'
import { ice } from './settings/ice.ts'
import { limits } from './settings/limits.ts'
import { push } from './settings/push.ts'
import { service } from './settings/service.ts'
import { stores } from './settings/stores.ts'
import { times } from './settings/times.ts'
import { tokens } from './settings/tokens.ts'
import { traces } from './settings/traces.ts'
import { webhooks } from './settings/webhooks.ts'

/**
 * Every setting of the service: what the parser of the environment, the type `Config`, the printed documents and
 * `ringwire config check` are made from.
 */
export const settings = {
  ...service,
  ...stores,
  ...tokens,
  ...times,
  ...limits,
  ...ice,
  ...push,
  ...webhooks,
  ...traces,
}

type Settings = typeof settings
export type Config = {
  readonly [K in keyof Settings]: Settings[K] extends Setting<infer T> ? T : never
} & {
  /** The files that secrets were read from. */
  readonly secretFiles: readonly string[]
}
