/** The client under test, as the kit sees it: what it sent, when it connected, and how it left. */
import type { Heard } from '../heard.ts'
import type { Link } from './link.ts'

/** A message that it sent. */
export interface Said {
  readonly link: Link
  readonly at: number
  readonly event: string
  readonly n: number | undefined
  readonly data: Readonly<Record<string, unknown>>
  readonly text: string
}

export interface Subject {
  readonly said: readonly Said[]
  /** What went to it. */
  readonly heard: readonly Heard[]
  /** When it tried to connect, in ms. */
  readonly attempts: readonly number[]
  /** The socket that has had its auth.ok. */
  readonly link: Link | undefined
  /** What auth.ok said last. */
  readonly hello: Heard | undefined
  readonly isExtended: boolean
  /** The capabilities that it listed last [EXT6]. */
  readonly can: readonly string[]
  /** How it closed its last socket by itself. */
  readonly leftWith: number | undefined
  /** The value, as soon as there is one; undefined after that time. */
  until<T>(read: () => T | undefined | false, ms: number): Promise<T | undefined>
  note: {
    said(said: Said): void
    heard(heard: Heard): void
    attempt(): void
    entered(link: Link, hello: Heard): void
    gone(link: Link, code: number | undefined): void
  }
}

export function createSubject(): Subject {
  const said: Said[] = []
  const heard: Heard[] = []
  const attempts: number[] = []
  let link: Link | undefined
  let hello: Heard | undefined
  let leftWith: number | undefined
  let changed = Promise.withResolvers<void>()
  const wake = () => {
    changed.resolve()
    changed = Promise.withResolvers()
  }
  return {
    said,
    heard,
    attempts,
    get link() {
      return link?.isOpen ? link : undefined
    },
    get hello() {
      return hello
    },
    get isExtended() {
      return typeof hello?.data?.session_id === 'string'
    },
    get can() {
      const query = link?.request.target.split('?')[1]
      return new URLSearchParams(query).get('can')?.split(',') ?? []
    },
    get leftWith() {
      return leftWith
    },
    async until(read, ms) {
      const end = performance.now() + ms
      for (;;) {
        const value = read()
        if (value !== undefined && value !== false) return value
        const left = end - performance.now()
        if (left <= 0) return undefined
        await Promise.race([changed.promise, Bun.sleep(left)])
      }
    },
    note: {
      said(it) {
        said.push(it)
        wake()
      },
      heard(it) {
        heard.push(it)
        wake()
      },
      attempt() {
        attempts.push(performance.now())
        wake()
      },
      entered(it, said) {
        link = it
        hello = said
        wake()
      },
      gone(_, code) {
        leftWith = code
        wake()
      },
    },
  }
}
