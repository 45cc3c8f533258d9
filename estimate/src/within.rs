//! Which methods does a name of the command line mean?

use crate::{
    code::MethodName,
    error::{Error, Result},
};

/// The most methods that an error lists.
const MOST: usize = 10;

/// Returns the methods that a text names: `org.example.App.run`, `App.run` or `run`, with a descriptor or with types of parameters behind
/// it if there are several: `run(I)V`, `run(int)`. Equal methods of several loaders are all meant. `methods` has None for what has no name.
///
/// # Errors
///
/// There is no such method, or there are several.
pub fn methods_named(text: &str, methods: &[Option<MethodName>]) -> Result<Vec<usize>> {
    let (name, signature) = match text.find('(') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let signature: String = signature.chars().filter(|one| *one != ' ').collect();
    let has_signature = |method: &MethodName| {
        let types = varid_symbolizer::class::parameters(&method.descriptor);
        let types = types.map(|types| types.replace(' ', ""));
        signature.is_empty() || method.descriptor == signature || types.as_ref() == Some(&signature)
    };
    let full = |method: &MethodName| format!("{}.{}", method.class, method.name);
    let is_whole = |method: &MethodName| full(method) == name;
    let ends = format!(".{name}");
    let is_end = |method: &MethodName| full(method).ends_with(&ends);
    let mut found = Vec::new();
    for is_meant in [&is_whole as &dyn Fn(&MethodName) -> bool, &is_end] {
        let named = methods.iter().enumerate();
        let named = named.filter_map(|(index, method)| Some((index, method.as_ref()?)));
        found = named
            .filter(|(_, method)| is_meant(method) && has_signature(method))
            .collect();
        if !found.is_empty() {
            break;
        }
    }
    let Some((_, first)) = found.first() else {
        return Err(Error::Counts(format!(
            "no method that was called is named '{text}': 'varid metrics --section methods' lists them"
        )));
    };
    if found.iter().any(|(_, method)| method != first) {
        let mut names: Vec<_> = found
            .iter()
            .map(|(_, method)| format!("{}{}", full(method), method.descriptor))
            .collect();
        names.sort();
        names.dedup();
        names.truncate(MOST);
        return Err(Error::Counts(format!(
            "'{text}' is not one method: name one of {}",
            names.join(", ")
        )));
    }
    Ok(found.into_iter().map(|(index, _)| index).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> std::result::Result<Vec<usize>, String> {
        let method = |class: &str, name: &str, descriptor: &str| {
            Some(MethodName {
                class: class.to_owned(),
                name: name.to_owned(),
                descriptor: descriptor.to_owned(),
            })
        };
        let methods = [
            method("emb.Pump", "run", "(I)I"),
            method("emb.Sort", "run", "(I)I"),
            method("emb.Sort", "swap", "([III)V"),
            None,
            method("emb.Sort", "swap", "(I)V"),
            method("emb.Pump", "run", "(I)I"),
        ];
        methods_named(text, &methods).map_err(|error| error.to_string())
    }

    #[test]
    fn a_method_is_named_as_far_as_it_takes() {
        assert_eq!(named("emb.Pump.run"), Ok(vec![0, 5]));
        assert_eq!(named("Pump.run"), Ok(vec![0, 5]));
        assert_eq!(named("swap(int[], int, int)"), Ok(vec![2]));
        assert_eq!(named("emb.Sort.swap(I)V"), Ok(vec![4]));
        for (wrong, expected) in [
            ("run", "name one of emb.Pump.run(I)I, emb.Sort.run(I)I"),
            (
                "emb.Sort.swap",
                "name one of emb.Sort.swap(I)V, emb.Sort.swap([III)V",
            ),
            ("ump.run", "no method that was called"),
            ("emb.Sort.swap(J)V", "no method that was called"),
        ] {
            let error = named(wrong).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
