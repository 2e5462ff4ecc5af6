import type { Page } from 'playwright-core'

/**
 * What a person would find wrong with the page as it stands: it scrolls sideways, a control cannot be reached or is
 * covered or too small, a text is cut off and nothing tells the rest of it, or two parts of a call lie on each other.
 */
export function findLayoutFaults(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const faults: string[] = []
    const dialog = document.querySelector('dialog[open]')
    const isSeen = (element: Element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true })
    // The panel of the security code is there while it is closed.
    const panel = [...document.querySelectorAll('.rw-panel')].find(isSeen)
    const nameOf = (element: Element) =>
      element.getAttribute('data-testid') ?? element.getAttribute('aria-label') ?? element.className
    const inside = ({ left, top, right, bottom }: DOMRect) =>
      left >= -0.5 && top >= -0.5 && right <= innerWidth + 0.5 && bottom <= innerHeight + 0.5

    /** What a pointer meets in the middle of the element and near each of its sides. A link may go over several lines. */
    const hitsOf = (element: Element) =>
      [...element.getClientRects()].flatMap(({ x, y, width, height }) =>
        [
          [0.5, 0.5],
          [0.15, 0.5],
          [0.85, 0.5],
          [0.5, 0.15],
          [0.5, 0.85],
        ].map(([right = 0, down = 0]) => document.elementFromPoint(x + width * right, y + height * down)),
      )

    if (document.documentElement.scrollWidth > innerWidth) faults.push('the page scrolls sideways')

    for (const control of (dialog ?? document).querySelectorAll('button, a[href], input, select, summary')) {
      // A radio button is drawn by what follows it.
      const shown = control.matches('input[type=radio]') ? control.nextElementSibling : control
      if (!shown || !isSeen(shown)) continue
      // Of the stage and of a dialog all is to be seen at once; the rest of a page may be scrolled to.
      if (!control.closest('.rw-stage, dialog')) shown.scrollIntoView({ block: 'nearest', behavior: 'instant' })
      if (panel?.contains(control)) shown.scrollIntoView({ block: 'nearest', behavior: 'instant' })
      const box = shown.getBoundingClientRect()
      if (!inside(box)) faults.push(`outside of the screen: ${nameOf(control)}`)
      // A link in a sentence is as high as its line (WCAG 2.2, 2.5.8).
      if (!control.matches('a') && Math.min(box.width, box.height) < 24)
        faults.push(`too small to hit: ${nameOf(control)}`)
      if (control.matches('button') && control.scrollWidth > control.clientWidth) {
        faults.push(`wider than its button: ${nameOf(control)}`)
      }
      for (const hit of hitsOf(shown)) {
        // The panel of devices lies over the stage until it is closed.
        if (!shown.contains(hit) && !panel?.contains(hit))
          faults.push(`covered by ${hit && nameOf(hit)}: ${nameOf(control)}`)
      }
    }
    scrollTo({ top: 0, behavior: 'instant' })

    for (const element of document.body.querySelectorAll('*')) {
      const hasText = [...element.childNodes].some(
        ({ nodeType, data }: ChildNode & { data?: string }) => nodeType === Node.TEXT_NODE && Boolean(data?.trim()),
      )
      if (!hasText || !isSeen(element) || element.closest('.rw-read, .sr-only, [title], option, .log-list pre'))
        continue
      const { overflowX, overflowY, clipPath } = getComputedStyle(element)
      const { scrollWidth, clientWidth, scrollHeight, clientHeight } = element
      if (clipPath !== 'none' || clientWidth === 0) continue
      const isCut =
        (overflowX === 'hidden' && scrollWidth > clientWidth) ||
        (overflowY === 'hidden' && scrollHeight > clientHeight + 2)
      if (isCut) faults.push(`cut off: ${element.textContent}`)
    }

    // A phone shows no title, so these lines are to be read as a whole.
    for (const line of document.querySelectorAll('.person-about')) {
      const { scrollWidth, clientWidth } = line
      if (isSeen(line) && getComputedStyle(line).clipPath === 'none' && scrollWidth > clientWidth)
        faults.push(`cut off: ${line.textContent}`)
    }

    const parts = [
      ...document.querySelectorAll(
        '.rw-stage :is(.rw-who, .rw-chip, .rw-tools, .rw-self, .rw-second, .rw-controls, .rw-tap)',
      ),
    ].filter(isSeen)
    for (const [at, one] of panel ? [] : parts.entries()) {
      const box = one.getBoundingClientRect()
      if (!inside(box)) faults.push(`outside of the screen: ${nameOf(one)}`)
      for (const other of parts.slice(at + 1)) {
        const { left, top, right, bottom } = other.getBoundingClientRect()
        const isApart = left >= box.right || right <= box.left || top >= box.bottom || bottom <= box.top
        if (!isApart) faults.push(`${nameOf(one)} and ${nameOf(other)} lie on each other`)
      }
    }
    return [...new Set(faults)]
  })
}
