import { expect, test } from 'bun:test'
import { createKnownEndpoints } from './known-endpoints.ts'
import { createSubscribers, type EndpointRow } from './subscribers.ts'

const row = (id: string, url: string): EndpointRow => ({
  ...{ id, product: 'shop', url, events: null, description: null, enabled: 1, secret: 'secret', created_at: 1 },
  ...{ old_secret: null, old_secret_until: null },
})

test('[HOOK3] an endpoint that was read twice, because it changed between two pages, is told once', () => {
  const subscribers = createSubscribers()
  const known = createKnownEndpoints(subscribers)
  const urls = () => subscribers.wanting('shop', 'call.ended').map(({ id, url }) => `${id} ${url}`)
  known.take({ changed: 2, removed: 0 }, [row('a', 'https://old.example'), row('b', 'https://b.example')])
  known.take({ changed: 3, removed: 0 }, [row('a', 'https://old.example'), row('a', 'https://new.example')])
  expect(urls()).toEqual(['b https://b.example', 'a https://new.example'])
  known.take({ changed: 3, removed: 1 }, [row('b', 'https://b.example'), row('b', 'https://newer.example')])
  expect(urls()).toEqual(['b https://newer.example'])
})
