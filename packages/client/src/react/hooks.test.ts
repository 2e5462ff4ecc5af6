import { expect, test } from 'bun:test'
import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { createCallClient } from '../client.ts'
import { useCall, useCallClient, useCallMedia, useHold, useTakeable, useTransfer } from './hooks.ts'

test('a component is rendered on a server, before anything is connected', () => {
  const client = createCallClient({ getToken: () => Promise.reject(new Error('not on a server')) })
  function View() {
    const { state, calls } = useCallClient(client)
    const call = useCall(calls[0])
    const media = useCallMedia(undefined)
    return createElement('p', null, `${state.name} ${calls.length} ${call?.name} ${media?.name}`)
  }
  expect(renderToString(createElement(View))).toBe('<p>idle 0 undefined undefined</p>')
})

test('a call and its media are read as they stand', () => {
  const source = (name: string) => ({ state: { name }, on: () => () => {} }) as never
  function View() {
    return createElement('p', null, `${useCall(source('ringing'))?.name} ${useCallMedia(source('flowing'))?.name}`)
  }
  expect(renderToString(createElement(View))).toBe('<p>ringing flowing</p>')
})

test('[HOLD1] which side holds the call is read as it stands', () => {
  const call = (held: boolean, byPeer: boolean) => ({ held, peerState: { held: byPeer }, on: () => () => {} }) as never
  function View() {
    const holds = [useHold(call(true, false)), useHold(call(false, true)), useHold(undefined)]
    return createElement('p', null, holds.map(({ held, byPeer }) => `${held} ${byPeer}`).join(', '))
  }
  expect(renderToString(createElement(View))).toBe('<p>true false, false true, false false</p>')
})

test('[XFER1] [TAKE1] the transfer of a call, and what can be taken, are read as they stand; nothing without them', () => {
  const call = {} as never
  const transfers = {
    of: (of: unknown) => (of === call ? { name: 'ringing' } : undefined),
    on: () => () => {},
  } as never
  const take = { calls: ['one'], on: () => () => {} } as never
  function View() {
    const found = [useTransfer(transfers, call), useTransfer(undefined, call), useTransfer(transfers, undefined)]
    return createElement(
      'p',
      null,
      [...found.map((it) => it?.name), ...useTakeable(take), ...useTakeable(undefined)].join(),
    )
  }
  expect(renderToString(createElement(View))).toBe('<p>ringing,,,one</p>')
})
