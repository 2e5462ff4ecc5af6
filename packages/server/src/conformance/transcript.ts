/** The messages on the wire, without the parts that nobody may read in a report [LOG1]. */

export interface SeenFrame {
  /** Since the scenario began, in ms. */
  readonly at_ms: number
  readonly who: string
  /** By who: `sent` goes to the service, `received` comes from it; `note`: what happened to the connection. */
  readonly kind: 'sent' | 'received' | 'note'
  readonly text: string
}

/** Replaces tokens, secrets and credentials by what they are. */
export interface Redactor {
  /** From now on this text is one. */
  add(secret: string): void
  clean(text: string): string
}

const named = /"(token|credential|secret|ring_ticket|password|username)"\s*:\s*"(?:[^"\\]|\\.)*"/g
const jwt = /eyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g

export function createRedactor(): Redactor {
  const secrets = new Set<string>()
  return {
    add: (secret) => void (secret.length > 3 && secrets.add(secret)),
    clean(text) {
      let clean = text
      for (const secret of secrets) clean = clean.replaceAll(secret, '<secret>')
      return clean.replace(named, '"$1":"<secret>"').replace(jwt, '<token>')
    },
  }
}

export interface Transcript {
  note(who: string, kind: SeenFrame['kind'], text: string): void
  /** The last ones. */
  last(): readonly SeenFrame[]
}

/** Of one scenario a report shows this number of frames, and this number of characters of each. */
const mostFrames = 40
const mostCharacters = 600

export function createTranscript(redactor: Redactor): Transcript {
  const begin = performance.now()
  const frames: SeenFrame[] = []
  return {
    note(who, kind, text) {
      const clean = redactor.clean(text)
      const shown = clean.length > mostCharacters ? `${clean.slice(0, mostCharacters)}…` : clean
      frames.push({ at_ms: Math.round(performance.now() - begin), who, kind, text: shown })
    },
    last: () => frames.slice(-mostFrames),
  }
}
