import { expect, test } from 'bun:test'
import { createCallClient } from '@ringwire/client'
import { createElement, type FunctionComponent } from 'react'
import { renderToString } from 'react-dom/server'
import * as ui from './ui.ts'

const client = createCallClient({ getToken: () => Promise.reject(new Error('not on a server')) })

test('every part is rendered on a server, where there is neither window nor document', () => {
  expect([typeof window, typeof document]).toEqual(['undefined', 'undefined'])
  const { CallProvider, CallStage, english, errorText, useCallUi, ...parts } = ui
  const idle = createElement('p', null, 'Nobody yet')
  const html = renderToString(
    createElement(
      CallProvider,
      { client, words: { stage: 'Anruf' } },
      createElement(CallStage, { idle, keys: true, details: true, securityCode: true }),
      ...Object.entries(parts).map(([key, part]) => createElement(part as FunctionComponent, { key })),
    ),
  )
  expect(Object.keys(parts)).toContain('DevicePreview')
  expect(html).toContain('aria-label="Anruf"')
  expect(html).toContain('Nobody yet')
  expect(html).not.toContain('<dialog')
})

test('a part without a provider says what it lacks', () => {
  expect(() => renderToString(createElement(ui.CallStage))).toThrow('CallProvider')
})
