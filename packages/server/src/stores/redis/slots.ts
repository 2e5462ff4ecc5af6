/** The number of slots in which a cluster's keys are. */
const slots = 16_384

/** The slot of a key without a hash tag: CRC16 (XMODEM) of its characters, all of which are ASCII. */
export function slotOf(key: string): number {
  let crc = 0
  for (let i = 0; i < key.length; i++) {
    crc ^= key.charCodeAt(i) << 8
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : ((crc << 1) ^ 0x1021) & 0xffff
  }
  return crc % slots
}

/** For each master that has slots, a key of those that begin so which is there; `masterOf` names who has a slot. */
export function keysOnEach(begin: string, masterOf: (slot: number) => string | undefined): Map<string, string> {
  const masters = new Set<string>()
  for (let slot = 0; slot < slots; slot++) {
    const master = masterOf(slot)
    if (master !== undefined) masters.add(master)
  }
  const keys = new Map<string, string>()
  for (let n = 0; keys.size < masters.size; n++) {
    const key = `${begin}${n}`
    const master = masterOf(slotOf(key))
    if (master !== undefined && !keys.has(master)) keys.set(master, key)
  }
  return keys
}
