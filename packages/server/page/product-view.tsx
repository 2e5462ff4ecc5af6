/** @jsxImportSource preact */
import type { ProductShown } from '@ringwire/protocol/backend'
import { useState } from 'preact/hooks'
import { ask, textOf } from './ask.ts'
import { Groups } from './groups.tsx'
import { useAsked } from './hooks.ts'
import { Do, Head, Problem, Secret } from './parts.tsx'
import { linkTo, type Place } from './place.ts'
import { productPath, useProducts } from './products.ts'
import { Webhooks } from './webhooks.tsx'
import { seconds, time } from './wording.ts'

interface Key {
  readonly key_id: string
  readonly products: readonly string[]
  readonly state: 'enabled' | 'disabled'
  readonly origin: string
  readonly created_at: string
}

export function ProductsView({ place }: { place: Place }) {
  const { data: products, problem } = useProducts()
  const keys = useAsked('keys', () => ask<{ data: readonly Key[] }>('keys'))
  const product = place.parts[1] ?? products?.[0]
  return (
    <>
      <Head title="Products" />
      <Problem text={problem ?? keys.problem} />
      <nav class="row" aria-label="Products">
        {products?.map((each) => (
          <a
            key={each}
            class="button"
            href={linkTo(['products', each])}
            aria-current={each === product ? 'page' : undefined}
          >
            {each}
          </a>
        ))}
      </nav>
      {product !== undefined && (
        <div class="columns" key={product}>
          <Settings product={product} />
          <Keys product={product} keys={keys.data?.data ?? []} onChanged={keys.again} />
          <Groups product={product} />
          <Webhooks product={product} />
        </div>
      )}
    </>
  )
}

const choices = [
  ['busy', 'A callee in another call', ['allow', 'reject']],
  ['media', 'Media goes', ['all', 'relay']],
  ['presence', 'Who sees who is there', ['off', 'peers']],
  ['invite_failure', 'Without an answer of the invite hook', ['allow', 'refuse']],
] as const
const switches = [
  ['reveal_busy', 'The caller hears that the callee is busy'],
  ['take', 'Another device may take an answered call'],
] as const

function Settings({ product }: { product: string }) {
  const { data, problem, again } = useAsked('settings', () => ask<ProductShown>(productPath(product, 'product')))
  const [failed, setFailed] = useState<string>()
  async function change(changes: Partial<ProductShown>): Promise<void> {
    try {
      await ask(productPath(product, 'product'), { method: 'PATCH', body: changes })
      setFailed(undefined)
    } catch (error) {
      setFailed(textOf(error))
    }
    again()
  }
  return (
    <section class="panel" data-testid="product-settings">
      <h2>Settings of {product}</h2>
      <Problem text={problem ?? failed} />
      {data && (
        <>
          {choices.map(([name, label, values]) => (
            <label key={name}>
              {label}
              <select
                value={data[name]}
                data-testid={name}
                onChange={({ currentTarget }) => void change({ [name]: currentTarget.value })}
              >
                {values.map((value) => (
                  <option key={value}>{value}</option>
                ))}
              </select>
            </label>
          ))}
          {switches.map(([name, label]) => (
            <label class="check" key={name}>
              <input
                type="checkbox"
                checked={data[name]}
                onChange={({ currentTarget }) => void change({ [name]: currentTarget.checked })}
              />
              {label}
            </label>
          ))}
          <p class="soft">
            Calls ring for{' '}
            {data.ring_timeout_ms === null ? 'the time of the service' : seconds(data.ring_timeout_ms / 1_000)}. Invite
            hook: {data.invite_url ?? 'none'}.
          </p>
        </>
      )}
    </section>
  )
}

interface KeysProps {
  readonly product: string
  readonly keys: readonly Key[]
  readonly onChanged: () => void
}

function Keys({ product, keys, onChanged }: KeysProps) {
  const [secret, setSecret] = useState<string>()
  const own = keys.filter(({ products }) => products.includes(product))
  async function change(path: string, body: object = {}): Promise<void> {
    const answer = await ask<{ secret?: string }>(path, { method: 'POST', body })
    setSecret(answer.secret)
    onChanged()
  }
  return (
    <section class="panel" data-testid="keys">
      <h2>Keys</h2>
      <Secret text={secret} />
      <ul class="list">
        {own.map(({ key_id: id, state, origin, created_at: at }) => (
          <li key={id}>
            <div>
              <code>{id}</code>{' '}
              <span class="badge" data-tone={state === 'enabled' ? 'good' : 'bad'}>
                {state}
              </span>{' '}
              <span class="soft">
                {origin}, {time(at)}
              </span>
            </div>
            <div class="row">
              <Do
                label={state === 'enabled' ? 'Disable' : 'Enable'}
                isDangerous={state === 'enabled'}
                question={
                  state === 'enabled'
                    ? `Refuse ${id} and all tokens that it was asked for? Their sockets are closed.`
                    : `Accept ${id} again?`
                }
                act={() => change(`keys/${encodeURIComponent(id)}/${state === 'enabled' ? 'disable' : 'enable'}`)}
              />
              {(origin === 'cli' || origin === 'page') && (
                <Do
                  label="Rotate"
                  question={`Give ${id} a new secret? The old one stays valid for a day.`}
                  act={() => change(`keys/${encodeURIComponent(id)}/rotate`)}
                />
              )}
            </div>
          </li>
        ))}
      </ul>
      <div>
        <Do
          label="New key"
          testId="new-key"
          isDangerous={false}
          question={`Make a key for ${product}?`}
          act={() => change('keys', { products: [product] })}
        />
      </div>
    </section>
  )
}
