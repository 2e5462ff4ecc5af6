import { expect, test } from 'bun:test'
import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { createCallClient } from '../client.ts'
import { useCall, useCallClient, useCallMedia, useHold } from './hooks.ts'

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
