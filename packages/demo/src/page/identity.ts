import type { Identity } from './backend.ts'

const key = 'ringwire-demo'

/** The identity of this tab. A reload keeps it, another tab has its own. */
export function loadIdentity(): Identity | undefined {
  const stored = sessionStorage.getItem(key)
  if (stored === null) return undefined
  const { name, role, device_id } = JSON.parse(stored) as Identity
  return { name, role, device_id }
}

export function saveIdentity(identity: Identity): void {
  sessionStorage.setItem(key, JSON.stringify(identity))
}

export function forgetIdentity(): void {
  sessionStorage.removeItem(key)
}
