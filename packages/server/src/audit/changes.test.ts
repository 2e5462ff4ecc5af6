import { expect, test } from 'bun:test'
import { changedSettings, changeOf } from './changes.ts'

const actor = { kind: 'key', name: 'k1' } as const
function changed(endpoint: string, body: Readonly<Record<string, unknown>>) {
  const asked = { product: 'shop', params: {}, query: new URLSearchParams(), body }
  return changeOf({ endpoint, outcome: 'done', actor, ...asked })
}

test('[ADM3] [HOOK5] of changed settings only these are written down, and of the URL its host', () => {
  // What a backend was answered, which it sends back.
  const body = {
    ...{ product: 'shop', busy: 'reject', reveal_busy: true, ring_timeout_ms: null, media: 'all', presence: 'off' },
    ...{ take: false, invite_failure: 'allow' },
    invite_url: 'https://user:pass@hooks.example:8443/a-secret?key=a-secret',
    ...{ invite_secret: 'a-secret', constructor: 'a-secret', unknown: { token: 'a-secret' } },
  }
  expect(changed('serverProductChange', body)?.detail).toEqual({
    ...{ busy: 'reject', reveal_busy: true, ring_timeout_ms: null, media: 'all', presence: 'off' },
    ...{ take: false, invite_url: 'hooks.example:8443', invite_failure: 'allow' },
  })
  expect(changed('serverProductChange', { invite_url: null })?.detail).toEqual({ invite_url: null })
})

test('[ADM3] a command that changes settings is written down as a backend that does', () => {
  const changes = { revealBusy: true, inviteUrl: 'https://hooks.example/a-secret', inviteSecret: 'a-secret' }
  expect(changedSettings(changes)).toEqual({ reveal_busy: true, invite_url: 'hooks.example' })
})
