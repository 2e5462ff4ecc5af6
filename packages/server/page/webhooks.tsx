/** @jsxImportSource preact */
import type { DeliveryPage, Webhook, WebhookPage } from '@ringwire/protocol/backend'
import { useState } from 'preact/hooks'
import { ask, textOf } from './ask.ts'
import { useAsked } from './hooks.ts'
import { Do, Problem, Scroll, Secret } from './parts.tsx'
import { productPath } from './products.ts'
import { plural, time } from './wording.ts'

/** The endpoints of a product, and what became of their deliveries. */
export function Webhooks({ product }: { product: string }) {
  const { data, problem, again } = useAsked('webhooks', () => ask<WebhookPage>(productPath(product, 'webhooks')))
  const [secret, setSecret] = useState<string>()
  const [url, setUrl] = useState('')
  const [failed, setFailed] = useState<string>()

  async function create(event: Event): Promise<void> {
    event.preventDefault()
    try {
      const made = await ask<{ secret: string }>(productPath(product, 'webhooks'), { method: 'POST', body: { url } })
      setSecret(made.secret)
      setUrl('')
      setFailed(undefined)
      again()
    } catch (error) {
      setFailed(textOf(error))
    }
  }

  return (
    <section class="panel" data-testid="webhooks">
      <h2>Webhooks</h2>
      <Problem text={problem ?? failed} />
      <Secret text={secret} />
      {data?.data.length === 0 && <p class="soft">There is no endpoint.</p>}
      <ul class="list">
        {data?.data.map((webhook) => (
          <Endpoint key={webhook.id} {...{ product, webhook, onSecret: setSecret, onChanged: again }} />
        ))}
      </ul>
      <form class="row" onSubmit={create}>
        <label class="grow">
          New endpoint
          <input
            type="url"
            required
            placeholder="https://"
            value={url}
            onInput={({ currentTarget }) => setUrl(currentTarget.value)}
          />
        </label>
        <button type="submit">Add</button>
      </form>
    </section>
  )
}

interface EndpointProps {
  readonly product: string
  readonly webhook: Webhook
  readonly onSecret: (secret: string | undefined) => void
  readonly onChanged: () => void
}

function Endpoint({ product, webhook: { id, url, enabled, events, description }, onSecret, onChanged }: EndpointProps) {
  const [isOpen, setOpen] = useState(false)
  const path = (...parts: readonly string[]) => productPath(product, 'webhooks', id, ...parts)
  const change = (where: string, asked: Parameters<typeof ask>[1]) => async () => {
    const answer = await ask<{ secret?: string } | undefined>(where, asked)
    onSecret(answer?.secret)
    onChanged()
  }
  return (
    <li>
      <div class="any">
        <strong>{url}</strong>{' '}
        <span class="badge" data-tone={enabled ? 'good' : 'bad'}>
          {enabled ? 'enabled' : 'disabled'}
        </span>{' '}
        <span class="soft">
          {plural(events.length, 'type')}
          {description && `, ${description}`}
        </span>
      </div>
      <div class="row">
        <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          Deliveries
        </button>
        <Do
          label="Test"
          isDangerous={false}
          question={`Send a webhook.test to ${url}?`}
          act={change(path('test'), { method: 'POST', body: {} })}
        />
        <Do
          label={enabled ? 'Disable' : 'Enable'}
          isDangerous={enabled}
          question={enabled ? `Send nothing more to ${url}?` : `Send events to ${url} again?`}
          act={change(path(), { method: 'PATCH', body: { enabled: !enabled } })}
        />
        <Do
          label="Rotate"
          question={`Give ${url} a new secret? For a day the old one signs, too.`}
          act={change(path('rotate'), { method: 'POST', body: {} })}
        />
        <Do
          label="Remove"
          question={`Remove ${url} with all of its deliveries?`}
          act={change(path(), { method: 'DELETE' })}
        />
      </div>
      {isOpen && <Deliveries path={path} />}
    </li>
  )
}

function Deliveries({ path }: { path: (...parts: readonly string[]) => string }) {
  const { data, problem, again } = useAsked('deliveries', () =>
    ask<DeliveryPage>(path('deliveries'), { query: { limit: '20' } }),
  )
  return (
    <Scroll name="Deliveries">
      <Problem text={problem} />
      {data?.data.length === 0 && <p class="soft">Nothing was sent yet.</p>}
      <table>
        <tbody>
          {data?.data.map(({ id, type, status, attempts, created_at: at, response_status: answered, response }) => (
            <tr key={id}>
              <td>{time(at)}</td>
              <td>{type}</td>
              <td>
                <span class="badge" data-tone={status === 'delivered' ? 'good' : status === 'failed' ? 'bad' : 'warn'}>
                  {status}
                </span>
              </td>
              <td title={response ?? ''}>
                {answered ?? 'no answer'} <span class="soft">{plural(attempts, 'attempt')}</span>
              </td>
              <td>
                {status !== 'pending' && (
                  <Do
                    label="Again"
                    isDangerous={false}
                    question={`Send ${type} once more, under the same id?`}
                    act={async () => {
                      await ask(path('deliveries', id, 'retry'), { method: 'POST', body: {} })
                      again()
                    }}
                  />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}
