/** @jsxImportSource preact */
import { ask } from './ask.ts'
import { useAsked } from './hooks.ts'
import { linkTo } from './place.ts'
import { duration, time } from './wording.ts'

/** What is wrong, since when, and what to do, as the service says it. */
export interface Trouble {
  readonly kind: 'database' | 'redis' | 'node' | 'webhook'
  readonly since: string
  readonly what: string
  readonly remedy: string
}

const pollMs = 5_000

/** The first thing to read: `known` is what Now says of stores and nodes. The endpoints that fail are asked for here. */
export function Troubles({ known, isOk }: { known: readonly Trouble[]; isOk: boolean }) {
  // Without the database nobody knows them, and that is said already.
  const { data } = useAsked('failing', () => ask<{ data: readonly Trouble[] }>('failing-webhooks'), pollMs)
  const troubles = [...known, ...(data?.data ?? [])]
  return (
    <section aria-label="What is wrong" aria-live="polite" data-testid="troubles">
      {troubles.length === 0 && isOk && data !== undefined && (
        <p class="soft">
          Nothing is known to be wrong: the stores take writes, no node has died, and no endpoint fails.
        </p>
      )}
      <ul class="troubles">
        {troubles.map(({ kind, since, what, remedy }) => (
          <li key={`${kind} ${what}`} data-trouble={kind}>
            <strong>{what}</strong>{' '}
            <span>
              Since {time(since)}, for {duration(since, null)}.
            </span>{' '}
            <span>
              {remedy} {kind === 'webhook' && <a href={linkTo(['products'])}>Products</a>}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}
