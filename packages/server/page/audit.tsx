/** @jsxImportSource preact */
import { useState } from 'preact/hooks'
import { ask, textOf } from './ask.ts'
import { useAsked } from './hooks.ts'
import { Head, Problem } from './parts.tsx'
import { linkTo, type Place } from './place.ts'
import { useProducts } from './products.ts'
import { saidOf, time } from './wording.ts'

interface Entry {
  readonly at: string
  readonly by: { readonly kind: 'operator' | 'key' | 'cli'; readonly name: string }
  readonly action: string
  readonly product: string | null
  readonly participant: { readonly role: string; readonly user_id: string } | null
  readonly subject: string | null
  readonly detail: Readonly<Record<string, unknown>>
}

interface Page {
  readonly data: readonly Entry[]
  readonly next_cursor: string | null
}

const kinds = { operator: 'operator', key: 'key', cli: 'command' } as const

/** What operators, backends and commands changed. */
export function AuditView({ place }: { place: Place }) {
  const product = place.query.get('product') ?? ''
  const { data: products } = useProducts()
  const { data, problem } = useAsked(`audit ${product}`, () => ask<Page>('audit', { query: { product } }))
  const [more, setMore] = useState<{ key: string; pages: readonly Page[]; problem?: string }>({
    key: product,
    pages: [],
  })
  const older = more.key === product ? more.pages : []
  const next = (older.at(-1) ?? data)?.next_cursor ?? null

  async function load(cursor: string): Promise<void> {
    try {
      const page = await ask<Page>('audit', { query: { product, cursor } })
      setMore({ key: product, pages: [...older, page] })
    } catch (error) {
      setMore({ key: product, pages: older, problem: textOf(error) })
    }
  }

  const entries = [...(data?.data ?? []), ...older.flatMap((page) => page.data)]
  return (
    <>
      <Head title="Audit log">
        <label>
          Product
          <select
            value={product}
            onChange={({ currentTarget }) => {
              location.hash = linkTo(['audit'], { product: currentTarget.value })
            }}
          >
            <option value="">all</option>
            {products?.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      </Head>
      <Problem text={problem ?? more.problem} />
      {data !== undefined && entries.length === 0 && <p class="panel soft">Nothing was changed yet.</p>}
      {entries.length > 0 && <Entries entries={entries} />}
      {next !== null && (
        <div>
          <button type="button" onClick={() => void load(next)}>
            Older changes
          </button>
        </div>
      )}
    </>
  )
}

function Entries({ entries }: { entries: readonly Entry[] }) {
  return (
    <div class="panel scroll">
      <table class="cards" data-testid="audit">
        <thead>
          <tr>
            {['When', 'Who', 'Change', 'Product', 'Of', 'Detail'].map((name) => (
              <th scope="col" key={name}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {entries.map(({ at, by, action, product, participant, subject, detail }, i) => (
            <tr key={`${at} ${i}`}>
              <td>{time(at)}</td>
              <td>
                <span class="badge">{kinds[by.kind]}</span> {by.name}
              </td>
              <td>
                <strong>{action}</strong>
              </td>
              <td>{product}</td>
              <td class="any">{participant ? `${participant.role}/${participant.user_id || '(erased)'}` : subject}</td>
              <td class="any soft">{saidOf(detail)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
