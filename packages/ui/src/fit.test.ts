import { expect, test } from 'bun:test'
import { fitOf } from './fit.ts'

const landscape = { width: 1280, height: 720 }
const portrait = { width: 720, height: 1280 }

test('a picture fills a frame of about its shape', () => {
  expect(fitOf(landscape, { width: 900, height: 700 }, false)).toBe('cover')
  expect(fitOf({ width: 640, height: 480 }, landscape, false)).toBe('cover')
  expect(fitOf(portrait, { width: 390, height: 844 }, false)).toBe('cover')
})

test('a picture that would lose most of itself is seen whole', () => {
  expect(fitOf(portrait, landscape, false)).toBe('contain')
  expect(fitOf(landscape, { width: 700, height: 1400 }, false)).toBe('contain')
})

test('a phone that is held upright is filled', () => {
  expect(fitOf(landscape, { width: 390, height: 844 }, false)).toBe('cover')
  expect(fitOf(landscape, { width: 360, height: 640 }, false)).toBe('cover')
})

test('a screen is seen whole in any frame', () => {
  expect(fitOf(landscape, landscape, true)).toBe('contain')
  expect(fitOf(landscape, { width: 390, height: 844 }, true)).toBe('contain')
})

test('before its size is known it is seen whole', () => {
  expect(fitOf({ width: 0, height: 0 }, landscape, false)).toBe('contain')
})
