const key = 'ringwire-demo-seen'

/** The instant up to which this person has seen the missed calls; kept over a reload. */
export function loadSeen(): string {
  return sessionStorage.getItem(key) ?? ''
}

export function keepSeen(instant: string): void {
  sessionStorage.setItem(key, instant)
}
