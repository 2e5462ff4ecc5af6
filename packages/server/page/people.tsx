/** @jsxImportSource preact */
import type { CallPage, ParticipantErased, ParticipantView } from '@ringwire/protocol/backend'
import { useState } from 'preact/hooks'
import { ask } from './ask.ts'
import { CallTable } from './calls.tsx'
import { useAsked } from './hooks.ts'
import { Do, Head, Problem } from './parts.tsx'
import { linkTo, type Place } from './place.ts'
import { productPath, useProducts } from './products.ts'
import { plural, saidOf, time } from './wording.ts'

const pollMs = 5_000

/** Somebody is a product, a role and a user_id. */
interface Who {
  readonly product: string
  readonly role: string
  readonly userId: string
}

export function PeopleView({ place }: { place: Place }) {
  const { data: products, problem } = useProducts()
  const [, product = products?.[0] ?? '', role = '', userId = ''] = place.parts
  return (
    <>
      <Head title={userId === '' ? 'People' : `${role}/${userId}`} />
      <Problem text={problem} />
      {products !== undefined && <Find key={`${product}/${role}/${userId}`} {...{ products, product, role, userId }} />}
      {userId !== '' && <Somebody key={`${product}/${role}/${userId}`} {...{ product, role, userId }} />}
    </>
  )
}

function Find({ products, ...who }: Who & { products: readonly string[] }) {
  const [product, setProduct] = useState(who.product)
  const [role, setRole] = useState(who.role)
  const [userId, setUserId] = useState(who.userId)
  return (
    <form
      class="filter"
      onSubmit={(event) => {
        event.preventDefault()
        location.hash = linkTo(['people', product, role, userId])
      }}
    >
      <label>
        Product
        <select value={product} onChange={({ currentTarget }) => setProduct(currentTarget.value)}>
          {[...new Set([product, ...products])].map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <label>
        Role
        <input required value={role} data-testid="role" onInput={({ currentTarget }) => setRole(currentTarget.value)} />
      </label>
      <label class="wide">
        User id
        <input
          required
          data-search
          value={userId}
          data-testid="user-id"
          onInput={({ currentTarget }) => setUserId(currentTarget.value)}
        />
      </label>
      <button type="submit">Show</button>
    </form>
  )
}

function Somebody({ product, role, userId }: Who) {
  const query = { role, user_id: userId }
  const path = (...parts: readonly string[]) => productPath(product, 'participants', ...parts)
  const { data, problem, again } = useAsked('who', () => ask<ParticipantView>(path(), { query }), pollMs)
  const calls = useAsked('calls', () =>
    ask<CallPage>(productPath(product, 'calls'), { query: { ...query, refused: '1', limit: '30' } }),
  )
  const [done, setDone] = useState<string>()
  const both = () => {
    again()
    calls.again()
  }
  return (
    <>
      <Problem text={problem ?? calls.problem} />
      {done !== undefined && (
        <p class="note" data-tone="good" role="status" data-testid="done">
          {done}
        </p>
      )}
      {data && <Present {...data} />}
      <div class="row">
        <Do
          label="Disconnect"
          testId="disconnect"
          question={`Close all sockets of ${role}/${userId}? Its tokens do not count any more, and its devices are not woken until they register again.`}
          act={async () => {
            await ask(path('disconnect'), { method: 'POST', query, body: {} })
            setDone('It was sent away.')
            both()
          }}
        />
        <a
          class="button"
          href={`api/${path('export')}?${new URLSearchParams(query)}`}
          download={`${role}-${userId}.json`}
        >
          Export
        </a>
        <Do
          label="Erase"
          testId="erase"
          question={`Erase everything that is kept of ${role}/${userId}? Its calls end. This cannot be undone.`}
          typed={userId}
          act={async () => {
            const erased = await ask<ParticipantErased>(path(), { method: 'DELETE', query })
            setDone(`It is erased: of ${plural(erased.calls, 'call')}, ${plural(erased.devices, 'device')}.`)
            both()
          }}
        />
      </div>
      {calls.data && <Calls product={product} page={calls.data} onEnded={both} />}
    </>
  )
}

function Present({ online, sessions, devices }: ParticipantView) {
  return (
    <div class="columns">
      <section class="panel" data-testid="sessions">
        <h2>
          Sessions{' '}
          <span class="badge" data-tone={online ? 'good' : undefined}>
            {online ? 'online' : 'offline'}
          </span>
        </h2>
        {sessions.length === 0 && <p class="soft">No socket is open.</p>}
        <ul>
          {sessions.map((session) => (
            <li key={session.session_id}>
              <strong>{session.device_id ?? 'no device'}</strong> since {time(session.connected_at)}{' '}
              <span class="soft">
                {session.extended ? 'extended' : 'base'}
                {session.app_version && `, ${session.app_version}`}, <code>{session.session_id}</code>
              </span>
            </li>
          ))}
        </ul>
      </section>
      <section class="panel">
        <h2>Devices that can be woken</h2>
        {devices.length === 0 && <p class="soft">None is registered.</p>}
        <ul>
          {devices.map((device) => (
            <li key={device.device_id}>
              <strong>{device.device_id}</strong> by {device.platform}{' '}
              <span class="soft">since {time(device.registered_at)}</span>
            </li>
          ))}
        </ul>
      </section>
    </div>
  )
}

function Calls({ product, page, onEnded }: { product: string; page: CallPage; onEnded: () => void }) {
  const { data, refused = [] } = page
  return (
    <>
      <h2>Calls</h2>
      {data.length === 0 ? (
        <p class="panel soft">None is kept.</p>
      ) : (
        <CallTable {...{ product, calls: data, onEnded }} />
      )}
      {refused.length > 0 && (
        <section class="panel" data-testid="refused">
          <h2>Invites that were refused</h2>
          <ul>
            {refused.map(({ call_uuid: id, entry }) => (
              <li key={`${id} ${entry.at}`}>
                {time(entry.at)} <a href={linkTo(['calls', product, id])}>{id.slice(0, 8)}</a>{' '}
                <span class="soft">{saidOf(entry.detail)}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  )
}
