/** @jsxImportSource preact */
import type { CallPage, CallView } from '@ringwire/protocol/backend'
import { useEffect, useState } from 'preact/hooks'
import { ask, textOf } from './ask.ts'
import { useAsked } from './hooks.ts'
import { Do, Head, Person, Problem, Status } from './parts.tsx'
import { linkTo, type Place } from './place.ts'
import { productPath, useProducts } from './products.ts'
import { lasted, plural, time } from './wording.ts'

type Page = Pick<CallPage, 'data' | 'next_cursor'> & { readonly searched?: number }

const statuses = ['live', 'ringing', 'accepted', 'connected', 'ended', 'missed', 'rejected', 'cancelled', 'busy']
const livePollMs = 2_000
const pollMs = 10_000

export function CallsView({ place }: { place: Place }) {
  const { data: products, problem } = useProducts()
  const product = place.parts[1] ?? products?.[0]
  return (
    <>
      <Head title="Calls" />
      <Problem text={problem} />
      {products?.length === 0 && <p class="soft">There is no product yet: ringwire keys create makes one.</p>}
      {product !== undefined && products !== undefined && <Found {...{ place, product, products }} />}
    </>
  )
}

function Found({ place, product, products }: { place: Place; product: string; products: readonly string[] }) {
  const status = place.query.get('status') ?? 'live'
  const q = place.query.get('q') ?? ''
  const isAny = status === 'any'
  const query = { q, status: isAny ? undefined : status }
  const path = productPath(product, q === '' ? 'calls' : 'search')
  const key = `${product} ${status} ${q}`
  const { data, problem, again } = useAsked(
    key,
    () => ask<Page>(path, { query }),
    q === '' ? (status === 'live' ? livePollMs : pollMs) : undefined,
  )
  const more = useMore(key, (cursor) => ask<Page>(path, { query: { ...query, cursor } }))
  const calls = [...(data?.data ?? []), ...more.calls]
  const next = more.isBegun ? more.next : (data?.next_cursor ?? null)
  return (
    <>
      <Filter {...{ product, products, status, q }} />
      <Problem text={problem ?? more.problem} />
      {data !== undefined && calls.length === 0 && <Nothing {...{ product, status, q }} />}
      {calls.length > 0 && <CallTable {...{ product, calls }} onEnded={again} />}
      {data?.searched !== undefined && (
        <p class="soft">{plural(data.searched + more.searched, 'call was', 'calls were')} searched.</p>
      )}
      {next !== null && (
        <div>
          <button type="button" onClick={() => void more.load(next)}>
            {q === '' ? 'Older calls' : 'Search further back'}
          </button>
        </div>
      )}
    </>
  )
}

/** Pages after the first, which the page reads again and again. */
function useMore(key: string, load: (cursor: string) => Promise<Page>) {
  const [pages, setPages] = useState<readonly Page[]>([])
  const [problem, setProblem] = useState<string>()
  useEffect(() => {
    setPages([])
    setProblem(undefined)
  }, [key])
  return {
    calls: pages.flatMap(({ data }) => data),
    searched: pages.reduce((sum, page) => sum + (page.searched ?? 0), 0),
    isBegun: pages.length > 0,
    next: pages.at(-1)?.next_cursor ?? null,
    problem,
    async load(cursor: string): Promise<void> {
      try {
        const page = await load(cursor)
        setPages((before) => [...before, page])
      } catch (error) {
        setProblem(textOf(error))
      }
    },
  }
}

interface FilterProps {
  readonly product: string
  readonly products: readonly string[]
  readonly status: string
  readonly q: string
}

function Filter({ product, products, status, q }: FilterProps) {
  const [text, setText] = useState(q)
  useEffect(() => setText(q), [q])
  const go = (change: { product?: string; status?: string; q?: string }) => {
    const now = { product, status, q: text, ...change }
    location.hash = linkTo(['calls', now.product], { status: now.status, q: now.q })
  }
  return (
    <form
      class="filter"
      onSubmit={(event) => {
        event.preventDefault()
        // A search looks at all calls, not only at those that go on.
        go(text !== q && status === 'live' ? { status: 'any' } : {})
      }}
    >
      <label>
        Product
        <select value={product} onChange={({ currentTarget }) => go({ product: currentTarget.value })}>
          {[...new Set([product, ...products])].map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <label>
        Status
        <select
          value={status}
          data-testid="status"
          onChange={({ currentTarget }) => go({ status: currentTarget.value })}
        >
          <option value="live">live: going on</option>
          <option value="any">any</option>
          {statuses.slice(1).map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <label class="wide">
        Person, call id or context
        <input
          type="search"
          data-search
          data-testid="search"
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      <button type="submit">Search</button>
    </form>
  )
}

function Nothing({ product, status, q }: { product: string; status: string; q: string }) {
  if (q !== '') {
    const isId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(q.trim())
    return (
      <p class="panel">
        Nothing was found for “{q}”.
        {isId && <a href={linkTo(['calls', product, q.trim()])}>Look for a refused invite of this id</a>}
      </p>
    )
  }
  return <p class="panel soft">{status === 'live' ? 'No call goes on in this product.' : 'There are no such calls.'}</p>
}

interface TableProps {
  readonly product: string
  readonly calls: readonly CallView[]
  readonly onEnded: () => void
}

export function CallTable({ product, calls, onEnded }: TableProps) {
  return (
    <div class="panel scroll">
      <table class="cards" data-testid="calls">
        <thead>
          <tr>
            {['Started', 'Status', 'Caller', 'Callee', 'Context', 'Lasted', 'Call'].map((name) => (
              <th scope="col" key={name}>
                {name}
              </th>
            ))}
            <th>
              <span class="sr-only">End</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {calls.map((call) => (
            <tr key={call.call_uuid} data-call={call.call_uuid}>
              <td>{time(call.started_at)}</td>
              <td>
                <Status call={call} /> {call.end_reason && <span class="soft">{call.end_reason}</span>}
              </td>
              <td class="any">
                <Person product={product} who={call.caller} />
              </td>
              <td class="any">
                <Person product={product} who={call.callee} />
              </td>
              <td class="any">
                {call.context_type}/{call.context_id}
              </td>
              <td>{lasted(call)}</td>
              <td>
                <a class="mono" href={linkTo(['calls', product, call.call_uuid])}>
                  {call.call_uuid.slice(0, 8)}
                </a>
              </td>
              <td>{call.ended_at === null && <EndCall {...{ product, call, onEnded }} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

export function EndCall({ product, call, onEnded }: { product: string; call: CallView; onEnded: () => void }) {
  const { caller, callee, call_uuid: id } = call
  return (
    <Do
      label="End"
      testId="end-call"
      question={`End the call of ${caller.role}/${caller.user_id} with ${callee.role}/${callee.user_id ?? callee.group}? Both sides are told.`}
      act={async () => {
        await ask(productPath(product, 'calls', id, 'end'), { method: 'POST', body: { reason: 'operator' } })
        onEnded()
      }}
    />
  )
}
