/**
 * Capabilities of an extended client beyond the events that every extended client knows [EXT6]. It lists its own when it
 * connects; the service sends what belongs to a capability only to sessions that listed it.
 */
export const capabilities = ['transfer', 'take', 'group'] as const
export type Capability = (typeof capabilities)[number]

/** The capabilities in a list with commas; names that this version does not know are left out. */
export function readCapabilities(list: string): readonly Capability[] {
  const named = list.split(',').map((name) => name.trim())
  return capabilities.filter((capability) => named.includes(capability))
}
