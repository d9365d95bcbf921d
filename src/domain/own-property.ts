/** Assignment that treats `__proto__` as the plain key it is in JSON and BSON, so that data never sets a prototype. */

/** Sets an own, enumerable property, whatever its name. */
export function setOwn(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
}
